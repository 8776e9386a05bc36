"""Stands in for the reader's tasks in a real helper: the picture's bytes say what its decoder does to its process."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from contextlib import suppress

from shared.errors import JsonValue
from shared.isolated.limits import Caps, address_space, confine
from shared.isolated.wire import Task, read_all, write_all

CAPS = Caps(memory=64 * 2**20, cpu=1, written=10_000)


def load(name: str) -> None:
    """Nothing to load."""


def run(task: Task, source: int, planes: int, line: int) -> JsonValue:
    act, _, argument = read_all(source).decode().partition(" ")
    confine(CAPS, address_space())
    facts: dict[str, JsonValue] = {}
    match act:
        case "segv":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "spin":
            while True:
                pass
        case "hang":
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            time.sleep(600)
        case "sleep":
            time.sleep(float(argument))
        case "kill":
            os.kill(os.getpid(), int(argument))
        case "helper":
            os.kill(os.getppid(), int(argument))
            time.sleep(600)
        case "bug":
            raise ZeroDivisionError
        case "memory":
            return _memory()
        case "write":
            return _refused(lambda: write_all(planes, bytes(int(argument))))
        case "open":
            return _refused(lambda: open("/etc/passwd").close())
        case "leave":
            facts["left"] = _left(int(argument))
        case "environment":
            facts["environment"] = dict(os.environ)
        case "lie":
            return json.loads(argument)  # type: ignore[no-any-return]
        case "flood":
            with suppress(OSError):
                while True:
                    for fd in range(3, 20):
                        with suppress(OSError):
                            os.write(fd, b"{}\n" * 10_000)
    return {"did": act, "pid": os.getpid(), **facts}


def _left(generations: int) -> int:
    """The first of so many processes, each the child of the one before, in sessions of their own, that sleep on."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if generations > 1:
            _left(generations - 1)
        time.sleep(600)
    return pid


def _memory() -> JsonValue:
    try:
        return {"size": len(bytearray(200 * 2**20))}
    except MemoryError:
        return {"memory": True}


def _refused(work: object) -> JsonValue:
    try:
        work()  # type: ignore[operator]
    except OSError as error:
        return {"errno": error.errno}
    return {"errno": 0}

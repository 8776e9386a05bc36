"""The helper process: one thread that waits, and for every picture a fork of it that is held to its limits.

It is started with nothing of its parent's environment, loads the readers once, and ends when its parent does. A fork
gets the picture's bytes in a file, writes planes into another and lines about them into a socket; the helper adds a
line on how the fork ended. Whatever hostile bytes do to a fork is gone with it, and so is every process that it has
started, on Linux. Knows processes and pipes; what a fork does is handed in.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Container, Iterable
from pathlib import Path

from shared.errors import JsonValue
from shared.isolated.wire import FILES, MAX_MESSAGE, Task

Run = Callable[[Task, int, int, int], JsonValue]
"""A task, the picture's file, the planes' file and the socket to who asked; the answer is a JSON object."""
_FAULT = 70
"""Exit code of a fork that met what is a bug of ours (sysexits' EX_SOFTWARE)."""
_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
"""prctl(2), PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER."""
_LIBC = ctypes.CDLL(None)
_OOM = Path("/proc/self/oom_score_adj")


def serve(control: int, run: Run) -> None:
    """Work for whoever holds the other end of the socket `control`, until it is closed; `run` is what a fork does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent decides when it is over
    if sys.platform == "linux":
        _LIBC.prctl(_SET_CHILD_SUBREAPER, 1)  # what a fork has started becomes ours when the fork ends
    with contextlib.suppress(OSError):
        _OOM.write_text("1000")  # where the machine's memory ends, this goes before the stage
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, _wake)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    gc.freeze()
    running: dict[int, int] = {}
    with socket.socket(fileno=control) as parent:
        while True:
            ready, _, _ = select.select([parent.fileno(), woken], [], [])
            if woken in ready:
                os.read(woken, 4096)
                _reap(running)
            if parent.fileno() in ready and not _next(parent, running, (woken, waker), run):
                break
    _end(running)
    _end_orphans({})


def _wake(*_: object) -> None:
    """What a signal does is written to the wakeup pipe; without a handler it would not be."""


def _next(parent: socket.socket, running: dict[int, int], own: tuple[int, int], run: Run) -> bool:
    """Start a fork for the next message. False when the parent is gone."""
    message, files, _, _ = socket.recv_fds(parent, MAX_MESSAGE, FILES)
    if not message:
        return False
    source, planes, line = files
    pid = os.fork()
    if pid == 0:
        for fd in (parent.fileno(), *own, *running.values()):
            os.close(fd)
        _work(run, message, source, planes, line)
    os.close(source)
    os.close(planes)
    running[pid] = line
    return True


def _work(run: Run, message: bytes, source: int, planes: int, line: int) -> None:
    """In the fork: never returns."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        _LIBC.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)  # no fork outlives the helper
    code = _FAULT
    try:
        answer = run(Task(**json.loads(message)), source, planes, line)
        os.write(line, json.dumps(answer).encode() + b"\n")
        code = 0
    finally:
        os._exit(code)  # nothing of the helper's is flushed or called again here


def _reap(running: dict[int, int]) -> None:
    """Say of every fork that ended how it did, and let go of its socket: that is the end of the answer."""
    with contextlib.suppress(ChildProcessError):  # none is left
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = found
            if pid not in running:
                continue  # what a fork has started
            line = running.pop(pid)
            _end_orphans(running)
            with contextlib.suppress(BlockingIOError, BrokenPipeError):
                os.set_blocking(line, False)
                os.write(line, json.dumps({"ended": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
            os.close(line)


def _end_orphans(running: Container[int]) -> None:
    """End what forks that are no more have started: it holds their files, and no limit of time holds for it."""
    while orphans := [pid for pid in _children() if pid not in running]:
        _end(orphans)


def _end(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _children() -> list[int]:
    own = Path(f"/proc/self/task/{os.getpid()}/children")
    return [int(pid) for pid in own.read_text().split()] if own.exists() else []

"""The parent's side of the helper process: started on first need, asked for one file at a time, replaced when gone.

It is spawned, never forked: this process has threads. What it gets is its command line, one socket and no environment
of ours. Safe in several threads. Knows processes, sockets and the error tree; nothing of pictures but limits.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from logging import getLogger
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from shared.errors import JsonValue, TransientError
from shared.imaging.probe import Limits
from shared.isolated import limits as caps
from shared.isolated.talk import GoneError, Talk, judged
from shared.isolated.wire import Task, write_all

log = getLogger(__name__)
T = TypeVar("T")

_BOOT = """
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[1])
tasks = importlib.import_module(sys.argv[3])
tasks.load(sys.argv[4])
importlib.import_module("shared.isolated.child").serve(int(sys.argv[2]), tasks.run)
"""
_ROOT = str(Path(__file__).resolve().parents[2])
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that is taken over from our environment: where some installations keep Python's own library."""
_LATE = 10.0
"""Seconds after a fork's own end in which the helper must have said so, and in which the helper itself ends."""


class Helper:
    """`name`: the task that its process is for, as in `wire`; `tasks`: the module that does it there."""

    def __init__(self, name: str, tasks: str = "shared.isolated.tasks") -> None:
        self._name, self._tasks = name, tasks
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        atexit.register(self.close)

    def ask(self, data: bytes, limits: Limits) -> tuple[Mapping[str, JsonValue], BinaryIO]:
        """What the task found, and a file with planes, which the caller closes.

        Raises what `shared.imaging.probe.probe` raises; MediaCorruptError with `context["reason"]` `crash`, `memory`
        or `time` for a picture that no decoder gets through within its limits; TransientError when there is no helper.
        """
        task, seconds = Task(self._name, limits.max_pixels, limits.max_side, limits.min_side), _wall(data, limits)

        def once() -> tuple[Mapping[str, JsonValue], BinaryIO]:
            with ExitStack() as undo:
                source, planes = undo.enter_context(scratch("picture")), undo.enter_context(scratch("planes"))
                write_all(source.fileno(), data)  # anew each time: a fork may write to it
                found = self._answer(task, source.fileno(), planes.fileno(), seconds)
                undo.pop_all()
                source.close()
                return found, planes

        return _twice(once)

    def ask_of(self, task: Task, source: int, seconds: float) -> Mapping[str, JsonValue]:
        """What a task found that has one answer and writes nothing, in at most so many seconds; raises as `ask`.

        `source`: a file that was opened for reading only.
        """
        return _twice(lambda: self._answer(task, source, source, seconds))

    def _answer(self, task: Task, source: int, planes: int, seconds: float) -> Mapping[str, JsonValue]:
        with self.talk(task, source, planes) as talk:
            return judged(talk.all(seconds + _LATE))

    @contextmanager
    def talk(self, task: Task, source: int, planes: int) -> Iterator[Talk]:
        """Begin a task on two files, which the caller keeps open meanwhile. Raises GoneError, also in its body."""
        control, process = self._started()
        try:
            ours, life = self._begun(control, task, (source, planes))
            with ours, life:
                yield Talk(ours, life)
        except GoneError:
            log.warning("the decoder's process is gone")
            self._drop(process)
            raise

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._drop(self._process)

    def _started(self) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        with self._lock:
            if self._process is None or self._control is None:
                ours, theirs = socket.socketpair()
                with theirs:
                    self._process, self._control = _spawned(self._tasks, self._name, theirs), ours
            return self._control, self._process

    def _drop(self, process: subprocess.Popen[bytes]) -> None:
        """Let go of a process: at the end of its socket it ends by itself, or is ended."""
        with self._lock:
            if self._process is not process or self._control is None:
                return  # another thread did, and there may be a new one
            with self._control as control, suppress(OSError):  # it is gone already
                control.shutdown(socket.SHUT_RDWR)  # for those too who still hold a copy
            self._process = self._control = None
        try:
            process.wait(_LATE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _begun(self, control: socket.socket, task: Task, files: tuple[int, int]) -> tuple[socket.socket, socket.socket]:
        """Our end of the socket to the fork, and one that ends with the helper."""
        ours, theirs = socket.socketpair()
        try:
            with theirs, self._lock:
                socket.send_fds(control, [json.dumps(asdict(task)).encode()], [*files, theirs.fileno()])
                return ours, control.dup()  # another thread may close the helper's meanwhile
        except OSError as error:
            ours.close()
            raise GoneError from error


def _twice(once: Callable[[], T]) -> T:
    """The second time with another process. Raises TransientError."""
    for _ in range(2):
        with suppress(GoneError):
            return once()
    raise TransientError("This file cannot be read now.")


def _spawned(tasks: str, name: str, control: socket.socket) -> subprocess.Popen[bytes]:
    path = json.dumps([_ROOT, *map(os.path.abspath, sys.path)])
    loader = {variable: os.environ[variable] for variable in _LOADER if variable in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own interpreter and our own words
        [sys.executable, "-I", "-B", "-c", _BOOT, path, str(control.fileno()), tasks, name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(control.fileno(),),
        env=_ENVIRONMENT | loader,
        start_new_session=True,
    )


def scratch(name: str) -> BinaryIO:
    """A file without a place, in memory where the system has such: nothing is left of it, however this ends."""
    if hasattr(os, "memfd_create"):
        return cast("BinaryIO", open(os.memfd_create(name), "r+b", buffering=0))
    return cast("BinaryIO", tempfile.TemporaryFile(buffering=0))


def _wall(data: bytes, limits: Limits) -> float:
    return caps.for_header(len(data)).wall + caps.for_pixels(len(data), limits.max_pixels).wall

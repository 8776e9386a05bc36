"""The parent's side of the helper process: started on first need, asked for one picture at a time, replaced when gone.

It is spawned, never forked: this process has threads. What it gets is its command line, one socket and no environment
of ours. Safe in several threads. Knows processes, pipes and the error tree; nothing of pictures but limits and errors.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict
from logging import getLogger
from pathlib import Path
from typing import BinaryIO, cast

from shared import rejections
from shared.errors import JsonValue, RejectedError, TransientError, WakeswapError
from shared.imaging.probe import Limits
from shared.isolated import limits as caps
from shared.isolated.wire import Task, write_all
from shared.rejections import MediaCorruptError

log = getLogger(__name__)

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
_LINE = 65_536
"""Bytes of the answer that are read."""
_LATE = 10.0
"""Seconds after a fork's own end in which the helper must have said so."""
_ERRORS: Mapping[str, type[RejectedError]] = {
    kind.code: kind
    for kind in (
        rejections.MediaEmptyError,
        rejections.MediaTruncatedError,
        rejections.MediaCorruptError,
        rejections.UnsupportedMediaTypeError,
        rejections.AnimationUnsupportedError,
        rejections.ImageTooLargeError,
        rejections.ImageTooSmallError,
    )
}


class _GoneError(Exception):
    """The helper itself has ended or hangs, which is no fault of the picture's."""


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
        for _ in range(2):
            control, process = self._started()
            with ExitStack() as undo:
                source, planes = undo.enter_context(_scratch()), undo.enter_context(_scratch())
                write_all(source.fileno(), data)
                try:
                    found = _read(self._said(control, limits, (source.fileno(), planes.fileno()), _wall(data, limits)))
                except _GoneError:
                    log.warning("the decoder's process is gone")
                    self._drop(process)
                    continue
                undo.pop_all()
                source.close()
                return found, planes
        raise TransientError("This picture cannot be read now.")

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

    def _said(self, control: socket.socket, limits: Limits, files: tuple[int, int], seconds: float) -> bytes:
        task = Task(self._name, limits.max_pixels, limits.max_side, limits.min_side)
        ours, theirs = os.pipe()
        with ExitStack() as undo:
            undo.callback(os.close, ours)
            try:
                with self._lock:
                    socket.send_fds(control, [json.dumps(asdict(task)).encode()], [*files, theirs])
                    life = undo.enter_context(control.dup())  # another thread may close ours meanwhile
            except OSError as error:
                raise _GoneError from error
            finally:
                os.close(theirs)
            return _until_closed(ours, life, seconds)


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


def _scratch() -> BinaryIO:
    """A file without a name, in memory where the system has such: nothing is left of it, however this ends."""
    if hasattr(os, "memfd_create"):
        return cast("BinaryIO", open(os.memfd_create("picture"), "r+b", buffering=0))
    return cast("BinaryIO", tempfile.TemporaryFile(buffering=0))


def _wall(data: bytes, limits: Limits) -> float:
    most = caps.for_header(len(data)).wall + caps.for_pixels(len(data), limits.max_pixels).wall
    return most + _LATE


def _until_closed(pipe: int, life: socket.socket, seconds: float) -> bytes:
    """What comes through the pipe. Raises _GoneError when the helper's socket ends first, or the time does."""
    ends, found, waiting = time.monotonic() + seconds, b"", select.poll()
    waiting.register(pipe, select.POLLIN)
    waiting.register(life, 0)  # tells its end all the same
    while len(found) < _LINE:
        left = ends - time.monotonic()
        ready = {fd for fd, _ in waiting.poll(left * 1000)} if left > 0 else set()
        if pipe not in ready:
            raise _GoneError
        block = os.read(pipe, _LINE)
        if not block:
            break
        found += block
    return found


def _read(said: bytes) -> Mapping[str, JsonValue]:
    """The fork's own line, if it came to that, and the helper's on how it ended."""
    lines = [_object(line) for line in said.splitlines()]
    ended = lines[-1].get("ended") if lines else None
    if not isinstance(ended, int):
        raise _GoneError
    if ended == -signal.SIGKILL:
        raise TransientError("This machine lacks the memory to read the picture.")
    if ended < 0:
        reason = "time" if -ended in (signal.SIGALRM, signal.SIGXCPU) else "crash"
        log.warning("a decoder was ended by its picture", extra={"reason": reason, "signal": -ended})
        raise _beyond(reason)
    if ended > 0 or len(lines) < 2:
        raise WakeswapError("The decoder has a bug.")
    found = lines[0]
    if found.get("memory"):
        raise _beyond("memory")
    if "error" in found:
        context = found.get("context")
        kind = _ERRORS.get(str(found["error"]), MediaCorruptError)
        raise kind(str(found.get("detail", "")), context=context if isinstance(context, dict) else {})
    return found


def _object(line: bytes) -> dict[str, JsonValue]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _beyond(reason: str) -> MediaCorruptError:
    return MediaCorruptError("No decoder gets through this file within its limits.", context={"reason": reason})

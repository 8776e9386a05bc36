"""What a fork of the helper says while it works, and what becomes of it: its lines, its end, an error of our tree.

Nothing that hostile bytes ran in is believed further than a line that is JSON. Knows sockets and the error tree.
"""

from __future__ import annotations

import json
import select
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from logging import getLogger

from shared import rejections
from shared.errors import JsonValue, RejectedError, TransientError, WakeswapError
from shared.rejections import MediaCorruptError

log = getLogger(__name__)

Line = Mapping[str, JsonValue]

_LINE = 65_536
"""Bytes of an answer that are read."""
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
        rejections.NoVideoStreamError,
        rejections.VideoTooLongError,
    )
}


class GoneError(Exception):
    """The helper itself has ended or hangs, which is no fault of the picture's."""


class Talk:
    """`ours`: the socket to the fork; `life`: another, which ends with the helper. Both stay the caller's."""

    def __init__(self, ours: socket.socket, life: socket.socket) -> None:
        self._ours, self._life = ours, life
        self._rest = b""
        self._waiting = select.poll()
        self._waiting.register(ours, select.POLLIN)
        self._waiting.register(life, 0)  # tells its end all the same

    def all(self, seconds: float) -> list[Line]:
        """Every line until the fork has ended. Raises GoneError when the helper ends first, or the time does."""
        ends, found = time.monotonic() + seconds, b""
        while len(found) < _LINE and (block := self._block(ends - time.monotonic())):
            found += block
        return [_object(line) for line in found.splitlines()]

    def line(self, seconds: float) -> Line | None:
        """The next line; None when there is none any more. Raises GoneError as `all`."""
        ends = time.monotonic() + seconds
        while b"\n" not in self._rest:
            block = self._block(ends - time.monotonic())
            if not block or len(self._rest) > _LINE:
                return None
            self._rest += block
        line, _, self._rest = self._rest.partition(b"\n")
        return _object(line)

    def say(self, data: bytes) -> None:
        with suppress(OSError):  # it has ended: the next line tells how
            self._ours.sendall(data)

    def _block(self, seconds: float) -> bytes:
        ready = {fd for fd, _ in self._waiting.poll(seconds * 1000)} if seconds > 0 else set()
        if self._ours.fileno() not in ready:
            raise GoneError
        try:
            return self._ours.recv(_LINE)
        except ConnectionResetError:
            return b""


def judged(lines: Sequence[Line]) -> Line:
    """The fork's answer, of its own last line, if it came to that, and the helper's on how it ended.

    Raises GoneError, and what `Helper.ask` does.
    """
    ended = lines[-1].get("ended") if lines else None
    if not isinstance(ended, int):
        raise GoneError
    if ended == -signal.SIGKILL:
        raise TransientError("This machine lacks the memory to read the file.")
    if ended < 0:
        reason = "time" if -ended in (signal.SIGALRM, signal.SIGXCPU) else "crash"
        log.warning("a decoder was ended by its file", extra={"reason": reason, "signal": -ended})
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


def _object(line: bytes) -> Line:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _beyond(reason: str) -> MediaCorruptError:
    return MediaCorruptError("No decoder gets through this file within its limits.", context={"reason": reason})

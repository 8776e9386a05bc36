"""A video's frames, for bytes from outside: decoded in a process of its own, taken one by one from a ring of memory.

The decoder goes on while the caller works, until the ring is full. Knows the facts, the frames and the helper.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from shared.errors import TransientError
from shared.isolated import limits as caps
from shared.isolated.helper import Helper, scratch
from shared.isolated.orders import FrameOrder
from shared.isolated.ring import Ring, frame_bytes, make
from shared.isolated.talk import GoneError, Line, Talk, judged
from shared.isolated.wire import FRAMES, Task
from shared.rejections import MediaCorruptError
from shared.video.facts import FORMAT_CHANGES, SIZE_CHANGES, Facts
from shared.video.frame import Frame

_helper = Helper(FRAMES, "shared.isolated.films")
_LATE = 10.0
_AHEAD_BYTES = 32 * 2**20
"""Frames that are decoded ahead: two at least, eight at most, in so many bytes."""
_THREADS = 4


class Frames(Iterator[Frame]):
    """Frames in the order of showing."""

    def __init__(self, talk: Talk, ring: Ring, pixel_format: str, *, held: int, seconds: float) -> None:
        self._talk, self._ring, self._pixel_format = talk, ring, pixel_format
        self._held, self._seconds = held, seconds
        self._taken = 0
        self._damaged = False
        self._done = False
        self.damage: tuple[str, ...] = ()
        """Words as in Facts; complete once the frames are at their end."""
        self.changes: tuple[str, ...] = ()
        """As complete: of SIZE_CHANGES and FORMAT_CHANGES those that were made like the video's first picture."""

    def __next__(self) -> Frame:
        """Raises as `decoded` says."""
        if self._done:
            raise StopIteration
        if self._taken > self._held:
            self._talk.say(b".")
        line = self._talk.line(self._seconds)
        if line is None or "frame" not in line:
            self._finish(line)
            raise StopIteration
        return self._frame(line)

    def _frame(self, line: Line) -> Frame:
        """Raises MediaCorruptError for what is no answer: what hostile bytes ran in is not believed."""
        match line:
            case {
                "frame": self._taken,
                "pts": int(pts),
                "duration": int(duration),
                "key": bool(key),
                "cut": bool(cut),
                "damaged": bool(damaged),
            }:
                planes = self._ring.planes(self._taken)
                self._taken += 1
                self._damaged |= damaged
                return Frame(planes, self._pixel_format, pts, duration, key, cut, damaged)
        raise MediaCorruptError

    def _finish(self, line: Line | None) -> None:
        self._done = True
        lines = [line] if line is not None else []
        while (line := self._talk.line(_LATE)) is not None and len(lines) < 3:
            lines.append(line)
        found = judged(lines)
        words = {"truncated": found.get("truncated"), "frames_damaged": found.get("lost") or self._damaged}
        self.damage = tuple(word for word, is_so in words.items() if is_so)
        changes = found.get("changes")
        told = changes if isinstance(changes, list) else []
        self.changes = tuple(word for word in (SIZE_CHANGES, FORMAT_CHANGES) if word in told)


@contextmanager
def decoded(
    path: Path, facts: Facts, *, start: int | None = None, held: int = 4, threads: int = _THREADS
) -> Iterator[Frames]:
    """The frames of a video file, or of a clip cut from the video that `facts` are of.

    start: tick of the first frame that is wanted. held: a frame's planes, which may be written to, stay as they are
    until so many more were taken; whoever needs them longer copies them. threads: of the decoder, at most.

    Raises while frames are taken: MediaTruncatedError, MediaCorruptError and UnsupportedMediaTypeError where nothing
    can be decoded; MediaCorruptError with `context["reason"]` `crash`, `memory` or `time` where no decoder gets
    through; TransientError where the decoder's process is gone. What is damaged in part is no error: see
    Frames.damage and Frame.damaged.
    """
    size = facts.width, facts.height
    pixels = facts.width * facts.height
    ahead = min(max(_AHEAD_BYTES // frame_bytes(facts.pixel_format, size), 2), 8)
    order = FrameOrder(
        pixel_format=facts.pixel_format,
        width=facts.width,
        height=facts.height,
        alpha=facts.alpha,
        slots=held + 1 + ahead,
        frames=facts.frames,
        threads=min(threads, os.cpu_count() or 1),
        in_memory=facts.container == "webp",
        start=start,
    )
    task = Task(FRAMES, pixels, 0, 0, asdict(order))
    try:
        with path.open("rb", buffering=0) as file, scratch("frames") as planes:
            make(planes.fileno(), order.slots, order.pixel_format, size)
            ring = Ring(planes.fileno(), order.slots, order.pixel_format, size)
            seconds = caps.patience(pixels) + _LATE
            with _helper.talk(task, file.fileno(), planes.fileno()) as talk:
                yield Frames(talk, ring, facts.pixel_format, held=held, seconds=seconds)
    except GoneError:
        raise TransientError("The video's decoder is gone.") from None

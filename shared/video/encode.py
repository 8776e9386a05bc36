"""Writes the clip of a segment: frames are encoded, groups without a face passed on; both in a thread of their own.

Between the caller and that thread wait a few frames at most, so that memory does not grow with the clip. Knows the
frames, the groups and the sink.
"""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from types import TracebackType
from typing import Self

import av

from shared.video import media, parameters
from shared.video.choosing import ANIMATIONS, Target
from shared.video.encoders import GAP, NUMBERED, Means, Spec, encoder
from shared.video.facts import Facts
from shared.video.faults import EncodeFailedError
from shared.video.frame import Frame
from shared.video.groups import Group
from shared.video.light import Light, light
from shared.video.passing import Passing, same_stream
from shared.video.pictures import Pictures
from shared.video.sink import Sink

WAITING = 4
"""Frames, or groups, between the caller and the encoder."""
_LOOK = 0.2
"""Seconds after which a caller who waits looks whether the encoder is still at work."""


class ClipWriter:
    """The clip at `path`, from frames and groups in the order of time; whole when the `with` block ends without error.

    `source` is the clip of the part that is worked on: what it says of light, fields and parameter sets holds for
    ours. Raises EncodeFailedError at any call after the encoder failed, and leaves no file then.
    """

    def __init__(
        self, path: Path, source: Path, facts: Facts, target: Target, *, quality: int, means: Means | None = None
    ) -> None:
        """`quality` 1..100."""
        self._path, self._facts, self._target = path, facts, target
        means = means or Means()
        name = encoder(target.codec, means)
        found = _Source(source, facts, target)
        self._passing = None if name in NUMBERED else found.passing
        number = self._passing.number if self._passing else 0
        self._spec = Spec(facts, target, quality, means, number, found.light, found.field_order)
        self._pictures = Pictures(facts, target)
        self._queue: Queue[av.VideoFrame | Group | None] = Queue(WAITING)
        self._error: EncodeFailedError | None = None
        self._key: int | None = None
        self.frames = 0
        """Taken, passed on ones too."""
        self._thread = Thread(target=self._work, args=(name,), name="encode", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abandon()
            return
        self._put(None)
        self._thread.join()
        self._check()

    def encode(self, frame: Frame) -> None:
        """Its planes are copied before this returns."""
        key = frame.cut or self._due(frame.pts)
        if key:
            self._key = frame.pts
        self._put(self._pictures.made(frame, key=key))
        self.frames += 1

    def takes(self, group: Group) -> bool:
        """Whether a group can be passed on; else its frames must be encoded."""
        return self._passing is not None and self._passing.takes(group)

    def copy(self, group: Group) -> None:
        """Pass on a group that `takes` took, without its frames being decoded."""
        self._put(group)
        self._key = None
        self.frames += len(group.packets)

    def _due(self, at: int) -> bool:
        return self._key is None or (at - self._key) * Fraction(*self._facts.time_base) >= GAP

    def _put(self, item: av.VideoFrame | Group | None) -> None:
        while True:
            self._check()
            with contextlib.suppress(Full):
                self._queue.put(item, timeout=_LOOK)
                return

    def _check(self) -> None:
        if self._error is not None:
            raise EncodeFailedError(self._error.detail) from self._error

    def _work(self, name: str) -> None:
        """The thread: what fails here is raised where the caller next asks."""
        try:
            sink = Sink(self._path, name, self._spec, self._passing)
            while (item := self._queue.get()) is not None:
                sink.copy(item) if isinstance(item, Group) else sink.encode(item)
            sink.close(self.frames)
        except EncodeFailedError as error:
            self._fail(error)
        except (av.error.FFmpegError, OSError, ValueError) as error:
            failed = EncodeFailedError("The encoder failed.", context={"reason": str(error)[:200]})
            failed.__cause__ = error
            self._fail(failed)

    def _fail(self, error: EncodeFailedError) -> None:
        self._error = error
        self._path.unlink(missing_ok=True)

    def _abandon(self) -> None:
        """End the thread without what still waits."""
        while self._thread.is_alive():
            with contextlib.suppress(Empty):
                self._queue.get_nowait()
            with contextlib.suppress(Full):
                self._queue.put_nowait(None)
            self._thread.join(_LOOK)
        self._path.unlink(missing_ok=True)


class _Source:
    """What the clip of the part says of the stream before its first picture."""

    def __init__(self, path: Path, facts: Facts, target: Target) -> None:
        self.light, self.field_order = Light(), 0
        self.passing: Passing | None = None
        if path.suffix != ".mkv" or facts.container in ANIMATIONS:
            return
        codec = {"hevc": "h265"}.get(facts.codec, facts.codec)
        with media.reading(path) as container:
            stream = media.video(container)
            record = stream.codec_context.extradata or b""
            first = bytes(next(media.packets(container, stream), b""))
            if facts.interlaced:
                self.field_order = stream.codec_context.field_order
        with contextlib.suppress(ValueError):
            sets = parameters.units_of(codec, record) if codec in ("h264", "h265") else []
            if codec in ("h264", "h265", "av1"):
                self.light = light(codec, first, sets)
            if same_stream(facts, target):
                self.passing = Passing(target.codec, record)

"""A segment's decoded frames, as its groups of pictures ask for them: none is decoded that nobody needs at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from shared.isolated.frames import Frames, decoded
from shared.video.facts import Facts
from shared.video.frame import Frame
from shared.vision.tracking.tracks import Tracks

TOGETHER = 4
"""Frames whose faces go through a network in one run. More would be more memory, and more frames held in the ring."""
_WARMING = 8
"""Frames of the part before, from which a face's light is known when the segment begins."""


class Reader:
    """The decoder starts with the first frame that is asked for."""

    def __init__(self, source: Path, facts: Facts, found: Tracks, start: int) -> None:
        """`start`: when the segment begins."""
        self._source, self._facts = source, facts
        before = [at for at in found.pts.tolist() if at < start][-_WARMING:]
        self._from = min(before, default=start)
        self._stack = ExitStack()
        self._frames: Frames | None = None
        self._next: Frame | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def pass_over(self, last: int) -> None:
        """Nobody needs the frames up to the time `last`."""
        if self._frames is None:
            self._from = last + 1
            return
        while self._peek(last):
            self._next = None

    def batches(self, last: int) -> Iterator[list[Frame]]:
        """Frames up to the time `last`, at most TOGETHER at a time; they stay valid until the next batch is taken."""
        batch: list[Frame] = []
        while (frame := self._peek(last)) is not None:
            self._next = None
            batch.append(frame)
            if len(batch) == TOGETHER:
                yield batch
                batch = []
        if batch:
            yield batch

    def _peek(self, last: int) -> Frame | None:
        """The next frame, if it is not later than `last`."""
        if self._next is None:
            if self._frames is None:
                self._frames = self._stack.enter_context(
                    decoded(self._source, self._facts, start=self._from, held=TOGETHER + 1)
                )
            self._next = next(self._frames, None)
        return self._next if self._next is not None and self._next.pts <= last else None

"""Frames of a video for the look that pictures get: one a second at least, and the first of each scene.

They come out of the pass that decodes the video for its faces; nothing is decoded twice. Knows the look, frames and
planes.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import cv2
import numpy as np

from shared.context import Context
from shared.imaging.codec import Picture
from shared.moderation.looking import Inspection
from shared.video import planes
from shared.video.facts import Facts
from shared.video.formats import layout
from shared.video.frame import Frame
from shared.video.turning import upright
from shared.vision.protocols import Image

_LONGEST = 1280
"""Pixels: text that can be read at a glance is found at that size, and the classifier looks at 224."""
_EVERY = 1.0
"""Seconds."""
TARGET = "target"


class Samples:
    """Of one segment. What is decided is on record when the block ends without error."""

    def __init__(self, ctx: Context, facts: Facts, index: int) -> None:
        self._inspection = Inspection(ctx, video=True, part=str(index))
        self._facts = facts
        self._ticks = _EVERY * facts.time_base[1] / facts.time_base[0]
        self._latest: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raises ReviewNeededError."""
        if kind is None:
            self._inspection.close()

    def look(self, frame: Frame) -> None:
        """At this frame, if it is time. Raises ContentRefusedError, once that is on record."""
        if self._latest is not None and not frame.cut and frame.pts - self._latest < self._ticks:
            return
        self._latest = frame.pts
        self._inspection.look(TARGET, Picture(self._picture(frame), self._alpha(frame), "video"))

    def _picture(self, frame: Frame) -> Image:
        return planes.small(frame, _LONGEST, self._facts)

    def _alpha(self, frame: Frame) -> Image | None:
        found = layout(frame.pixel_format)
        if not found.alpha:
            return None
        plane = frame.planes[-1]
        levels = plane if found.depth == 8 else np.right_shift(plane, found.depth - 8).astype(np.uint8)
        height, width = self._picture(frame).shape[:2]
        size = (height, width) if self._facts.rotation % 180 else (width, height)
        small = cv2.resize(levels, size, interpolation=cv2.INTER_AREA)
        return upright(np.asarray(small, np.uint8), self._facts.rotation)

"""A frame's upright picture with square pixels: what faces are found in, since a squeezed face is none to a model.

Where a video's pixels are square this is `planes` itself; else pictures are stretched, and of what was changed in them
the difference is squeezed again. Boxes are in square pixels. Knows numpy, OpenCV, the facts and the planes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.video import planes
from shared.video.facts import Facts
from shared.video.frame import Frame
from shared.video.planes import Picture
from shared.video.turning import Box

_ROOM = 2
"""Pixels around a box that a stretched picture reads."""


@dataclass(frozen=True)
class Square:
    facts: Facts

    @cached_property
    def stretch(self) -> tuple[float, float]:
        """As in Facts."""
        return self.facts.stretch

    @property
    def plain(self) -> bool:
        return self.stretch == (1.0, 1.0)

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        width, height = self.facts.shown
        return round(width * self.stretch[0]), round(height * self.stretch[1])

    def small(self, frame: Frame, longest: int) -> Picture:
        """The whole picture, at most `longest` pixels a side."""
        picture = planes.small(frame, longest, self.facts)
        if self.plain:
            return picture
        ratio = min(1.0, longest / max(self.size))
        size = max(1, round(self.size[0] * ratio)), max(1, round(self.size[1] * ratio))
        return cast(Picture, cv2.resize(picture, size, interpolation=cv2.INTER_LINEAR))

    def bgr(self, frame: Frame, box: Box) -> Picture:
        """The pixels of a box, [y1 - y0, x1 - x0, 3]."""
        if self.plain:
            return planes.bgr(frame, box, self.facts)
        own = self._own(box)
        return self._through(planes.bgr(frame, own, self.facts), own, box)

    def add(self, frame: Frame, box: Box, before: Picture, after: Picture) -> None:
        """As `planes.add`, of what `bgr` gave for the box."""
        if self.plain:
            planes.add(frame, box, before, after, self.facts)
            return
        own = self._own(box)
        old = planes.bgr(frame, own, self.facts)
        change = cast(NDArray[np.float32], cv2.subtract(after, before, dtype=cv2.CV_32F))
        squeezed = self._back(change, box, own)
        new = cast(Picture, cv2.add(old, np.rint(squeezed), dtype=cv2.CV_8U))
        planes.add(frame, own, old, new, self.facts)

    def _own(self, box: Box) -> Box:
        """The box in the video's own pixels, with what lies around it."""
        (across, down), (width, height) = self.stretch, self.facts.shown
        return (
            max(0, int(box[0] / across) - _ROOM),
            max(0, int(box[1] / down) - _ROOM),
            min(width, int(np.ceil(box[2] / across)) + _ROOM),
            min(height, int(np.ceil(box[3] / down)) + _ROOM),
        )

    def _through(self, picture: Picture, own: Box, box: Box) -> Picture:
        """Of the video's pixels, whose middles lie at (x + 1/2) * stretch - 1/2."""
        across, down = self.stretch
        back = np.array(
            [
                [1 / across, 0, (box[0] + 0.5) / across - 0.5 - own[0]],
                [0, 1 / down, (box[1] + 0.5) / down - 0.5 - own[1]],
            ]
        )
        size = box[2] - box[0], box[3] - box[1]
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        return cast(Picture, cv2.warpAffine(picture, back, size, flags=flags, borderMode=cv2.BORDER_REPLICATE))

    def _back(self, change: NDArray[np.float32], box: Box, own: Box) -> NDArray[np.float32]:
        """Averaged over what one of the video's pixels covers; nothing outside of the box."""
        across, down = self.stretch
        dense = int(np.ceil(max(across, down)))
        step_x, step_y = across / (dense if across > 1 else 1), down / (dense if down > 1 else 1)
        width, height = own[2] - own[0], own[3] - own[1]
        size = width * (dense if across > 1 else 1), height * (dense if down > 1 else 1)
        way = np.array(
            [
                [step_x, 0, own[0] * across + step_x / 2 - 0.5 - box[0]],
                [0, step_y, own[1] * down + step_y / 2 - 0.5 - box[1]],
            ]
        )
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        fine = cv2.warpAffine(change, way, size, flags=flags, borderMode=cv2.BORDER_CONSTANT)
        return cast(NDArray[np.float32], cv2.resize(fine, (width, height), interpolation=cv2.INTER_AREA))

"""A frame of a video as those see it who look for faces in it, cut them out and lay others over them.

Upright, with square pixels. Faces are sampled from the frame's own planes and laid over them, each plane at its own
resolution: a frame never becomes a picture. Knows numpy, OpenCV, imaging and the planes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import cv2
import numpy as np

from shared.imaging.geometry import Doubles, invert, outline, region
from shared.imaging.paste import paste, paste_planes
from shared.imaging.warp import coarse, moved, warp
from shared.video import planes, tone
from shared.video.facts import Facts
from shared.video.formats import layout
from shared.video.frame import Frame, Samples
from shared.video.planes import Picture, Reals
from shared.video.square import Square
from shared.video.turning import Box


@dataclass(frozen=True)
class FrameCanvas:
    """Canvas and Look of `shared.imaging.look`."""

    frame: Frame
    square: Square

    @property
    def size(self) -> tuple[int, int]:
        return self.square.size

    def small(self, longest: int) -> Picture:
        return self.square.small(self.frame, longest)

    def part(self, box: Box) -> Picture:
        return self.square.bgr(self.frame, box)

    def cut(self, back: Doubles, size: tuple[int, int]) -> Picture:
        return planes.coloured([warp(*seen, size) for seen in self._through(back)], size, self.square.facts)

    def glimpse(self, back: Doubles, size: tuple[int, int]) -> Picture:
        return planes.coloured([coarse(*seen, size) for seen in self._through(back)], size, self.square.facts)

    def grey(self, back: Doubles, size: tuple[int, int]) -> Picture:
        """Of the first plane: luma, or green."""
        facts = self.square.facts
        seen = coarse(*next(self._through(back)), size)
        spare = layout(facts.pixel_format).depth - 8
        return cast(Picture, cv2.convertScaleAbs(seen, alpha=0.5**spare) if spare else seen)

    def lay(self, crop: Picture | Reals, mask: Reals, matrix: Doubles) -> None:
        facts = self.square.facts
        if tone.is_hdr(facts.colour.transfer):  # what lies above an ordinary picture's white is kept by a difference
            self._lay_difference(crop, mask, matrix)
            return
        ways, new = _ways(facts), planes.levels(crop, facts)
        groups = [slice(0, 3)] if layout(facts.pixel_format).shift == (0, 0) else [slice(0, 1), slice(1, 3)]
        for group in groups:
            back = _after(invert(ways[group.start]), matrix)
            paste_planes(self.frame.planes[group][: len(new)], new[group], mask, back)

    def change(self, box: Box, before: Picture, after: Picture) -> None:
        self.square.add(self.frame, box, before, after)

    def _through(self, back: Doubles) -> Iterator[tuple[Samples, Doubles]]:
        """Every plane but the alpha, with the map into it."""
        ways = _ways(self.square.facts)
        return ((plane, _after(back, way)) for plane, way in zip(self.frame.planes, ways, strict=False))

    def _lay_difference(self, crop: Picture | Reals, mask: Reals, matrix: Doubles) -> None:
        side = mask.shape[0]
        width, height = self.size
        box = region(outline(side, side, invert(matrix), 1), (height, width), 1)
        if box[0] < box[2] and box[1] < box[3]:
            before = self.part(box)
            after = before.copy()
            paste(after, crop, mask, moved(matrix, box[0], box[1]))
            self.change(box, before, after)


def _after(first: Doubles, then: Doubles) -> Doubles:
    """One affine map [2, 3] and then another."""
    return np.column_stack([then[:, :2] @ first[:, :2], then[:, :2] @ first[:, 2] + then[:, 2]])


@lru_cache(maxsize=32)
def _ways(facts: Facts) -> tuple[Doubles, ...]:
    """From pixels of the upright, square picture into each plane but the alpha, [2, 3], whole at pixel centres."""
    upright = _turned(facts) @ _scaled(1 / facts.stretch[0], 1 / facts.stretch[1])
    form = layout(facts.pixel_format)
    colours = _scaled(0.5 ** form.shift[0], 0.5 ** form.shift[1]) @ upright
    found = (upright,) if form.kind == "gray" else (upright, colours, colours)
    return tuple(way[:2] for way in found)


def _scaled(x: float, y: float) -> Doubles:
    """[3, 3]: edges, which lie half a pixel before centres, stay where they are."""
    return np.array([[x, 0, (x - 1) / 2], [0, y, (y - 1) / 2], [0, 0, 1]])


def _turned(facts: Facts) -> Doubles:
    """[3, 3]: from the picture as it is shown to the coded one."""
    right, bottom = facts.width - 1, facts.height - 1
    rows = {
        90: ((0, -1, right), (1, 0, 0)),
        180: ((-1, 0, right), (0, -1, bottom)),
        270: ((0, 1, 0), (-1, 0, bottom)),
    }
    return np.array([*rows.get(facts.rotation % 360, ((1, 0, 0), (0, 1, 0))), (0, 0, 1)], np.float64)

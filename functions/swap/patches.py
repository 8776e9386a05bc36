"""The parts of a video's frame in which faces are swapped: as large as the faces need, and apart from one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shared.video.turning import Box
from shared.vision.protocols import Floats
from shared.vision.tracking.tracks import Place


@dataclass(frozen=True)
class Patch:
    box: Box
    places: list[Place]

    def local(self, values: Floats) -> Floats:
        """Points [n, 2 or 3] of the frame in pixels of the patch."""
        moved: Floats = values - np.array([*self.box[:2], 0][: values.shape[1]], np.float32)
        return moved


def patches(places: Sequence[Place], size: tuple[int, int], reach: Callable[[Place], Floats]) -> list[Patch]:
    """Boxes that touch are one, since faces in them may lie over each other.

    size: width and height of the frame. reach: what the work on a face touches, [4].
    """
    found: list[Patch] = []
    for place in places:
        new = Patch(_inside(reach(place), size), [place])
        while touching := next((one for one in found if _touch(one.box, new.box)), None):
            found.remove(touching)
            new = Patch(_both(touching.box, new.box), [*touching.places, *new.places])
        found.append(new)
    return [one for one in found if one.box[0] < one.box[2] and one.box[1] < one.box[3]]


def _inside(box: Floats, size: tuple[int, int]) -> Box:
    x0, y0 = (int(max(0, np.floor(value))) for value in box[:2])
    x1, y1 = (int(min(limit, np.ceil(value))) for value, limit in zip(box[2:], size, strict=True))
    return x0, y0, x1, y1


def _touch(a: Box, b: Box) -> bool:
    return min(a[2], b[2]) > max(a[0], b[0]) and min(a[3], b[3]) > max(a[1], b[1])


def _both(a: Box, b: Box) -> Box:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])

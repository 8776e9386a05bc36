"""The parts of a video's frame in which faces are swapped: as large as the faces need, and apart from one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shared.video.turning import Box
from shared.vision.protocols import Floats
from shared.vision.tracking.tracks import Place

NEAR, FAR = 0.06, 0.9
"""Room around a mesh, in its longer side: the embedded swapper stays inside the mesh's own box; the crops of learned
ones and of restorers, turned by 45 degrees, reach 0.83 beyond it (`ffhq_512`, the widest template)."""


@dataclass(frozen=True)
class Patch:
    box: Box
    places: list[Place]

    def local(self, values: Floats) -> Floats:
        """Points [n, 2 or 3] of the frame in pixels of the patch."""
        moved: Floats = values - np.array([*self.box[:2], 0][: values.shape[1]], np.float32)
        return moved


def patches(places: Sequence[Place], size: tuple[int, int], room: float) -> list[Patch]:
    """Boxes that touch are one, since faces in them may lie over each other. `size`: width and height of the frame."""
    found: list[Patch] = []
    for place in places:
        new = Patch(_around(place.mesh, size, room), [place])
        while touching := next((one for one in found if _touch(one.box, new.box)), None):
            found.remove(touching)
            new = Patch(_both(touching.box, new.box), [*touching.places, *new.places])
        found.append(new)
    return [one for one in found if one.box[0] < one.box[2] and one.box[1] < one.box[3]]


def _around(mesh: Floats, size: tuple[int, int], room: float) -> Box:
    low, high = mesh[:, :2].min(0), mesh[:, :2].max(0)
    pad = 8 + room * float((high - low).max())
    x0, y0 = (int(max(0, np.floor(value - pad))) for value in low)
    x1, y1 = (int(min(limit, np.ceil(value + pad))) for value, limit in zip(high, size, strict=True))
    return x0, y0, x1, y1


def _touch(a: Box, b: Box) -> bool:
    return min(a[2], b[2]) > max(a[0], b[0]) and min(a[3], b[3]) > max(a[1], b[1])


def _both(a: Box, b: Box) -> Box:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])

"""The parts of a frame in which faces are swapped: as large as the faces need, and apart from one another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from shared.imaging.look import Box
from shared.vision.protocols import Floats, Target


@dataclass(frozen=True)
class Patch:
    box: Box
    targets: list[Target]
    """In pixels of the frame."""

    @property
    def local(self) -> list[Target]:
        """In pixels of the patch."""
        corner = np.array([*self.box[:2], 0], np.float32)
        return [
            replace(one, mesh=one.mesh - corner, points=None if one.points is None else one.points - corner[:2])
            for one in self.targets
        ]


def patches(targets: Sequence[Target], size: tuple[int, int], reach: Callable[[Target], Floats]) -> list[Patch]:
    """Boxes that touch are one, since faces in them may lie over each other.

    size: width and height of the frame. reach: what the work on a face touches, [4].
    """
    found: list[Patch] = []
    for target in targets:
        new = Patch(_inside(reach(target), size), [target])
        while touching := next((one for one in found if _touch(one.box, new.box)), None):
            found.remove(touching)
            new = Patch(_both(touching.box, new.box), [*touching.targets, *new.targets])
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

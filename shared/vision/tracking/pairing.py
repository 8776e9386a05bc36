"""Which of the faces seen in a frame belongs to which of those that are followed.

A face alone is its own; where two are near each other, or one comes back, what they look like decides as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from shared.vision.protocols import Detection, Floats, FoundFace
from shared.vision.tracking.appearance import Appearance, difference
from shared.vision.tracking.pursuit import Pursuit, Seen, middle, size_of

_NEAR = 1.3
"""Of the faces' size: nearer ones may be taken for each other."""
_ONE = 0.4
"""Faces nearer than this part of their size are one."""
_REACH = 0.8
"""Of its size, a face moves at most this far from where it is expected, and half of it more for each missed frame."""
_LOOKS = 2.0
"""What looking like another costs, in sizes of the face."""


class Own(NamedTuple):
    """A face seen in a frame, and who was followed there (index into the pursuits), if anyone."""

    seen: Seen
    owner: int | None


def distinct(found: Sequence[Own]) -> list[Own]:
    """One for each place: the best-fitting of those that lie on one another."""
    kept: list[Own] = []
    for own in sorted(found, key=lambda own: own.seen.face.misfit):
        if all(not same_place(own.seen, other.seen) for other in kept):
            kept.append(own)
    return kept


def same_place(a: Seen, b: Seen) -> bool:
    return float(np.linalg.norm(a.centre - b.centre)) < _ONE * max(a.size, b.size)


def lies_on(face: Detection | FoundFace, mesh: Floats) -> bool:
    """Whether the middle of a detected box lies on the face that a mesh [468, 3] measured."""
    centre = (face.box[:2] + face.box[2:]) / 2
    return float(np.linalg.norm(centre - middle(mesh))) < _ONE * size_of(mesh)


def contested(pursuits: Sequence[Pursuit], found: Sequence[Own]) -> set[int]:
    """Indices into `found` of faces near which another face is, or is expected."""
    places = [(own.seen.centre, own.seen.size) for own in found]
    missed = {k for k in range(len(pursuits)) if k not in {own.owner for own in found}}
    expected = [pursuits[k].expected for k in sorted(missed)]
    places += [(middle(mesh), size_of(mesh)) for mesh in expected]
    near: set[int] = set()
    for index, own in enumerate(found):
        for other, (centre, size) in enumerate(places):
            far = float(np.linalg.norm(centre - own.seen.centre)) > _NEAR * max(size, own.seen.size)
            if other != index and not far:
                near.add(index)
    return near


def pairs(
    pursuits: Sequence[Pursuit],
    found: Sequence[Own],
    doubtful: set[int],
    appear: Callable[[Seen], Appearance],
) -> dict[int, int]:
    """Pursuit to face, by index; cheapest pairs first.

    `doubtful`: faces whose looks must fit as well; `appear` gives these, as finely as can be told.
    """
    costs: list[tuple[float, int, int]] = []
    for k, pursuit in enumerate(pursuits):
        for index, own in enumerate(found):
            far = float(np.linalg.norm(middle(pursuit.expected) - own.seen.centre)) / own.seen.size
            if far > _REACH * (1 + pursuit.missing / 2):
                continue
            looks = 0.0
            if index in doubtful or own.owner != k:
                looks = difference(pursuit.looks, appear(own.seen))
            if looks < 1:
                costs.append((far + _LOOKS * max(looks, 0.0), k, index))
    chosen: dict[int, int] = {}
    for _, k, index in sorted(costs):
        if k not in chosen and index not in chosen.values():
            chosen[k] = index
    return chosen

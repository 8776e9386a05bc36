"""Which tracks of a clip show one person.

By a recogniser's vectors where there are any; without, a face that is back in its place after a moment is the same
one, and nobody is known again in another scene.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shared.vision.protocols import Floats
from shared.vision.tracking.appearance import Appearance, cosine, difference
from shared.vision.tracking.pursuit import middle, size_of
from shared.vision.tracking.trail import Trail

SAME = 0.4
"""Cosine of two sums of vectors from which they are one person's; ArcFace's usual threshold for verification."""
_AWAY = 25
_STEP = 1.0
"""Frames for which a face may be away, and how far from its place it may come back, in its sizes."""


def persons_of(trails: Sequence[Trail], cuts: Sequence[int]) -> list[int]:
    """A number for each trail, counted from 0 in the order of appearance. `trails` in the order of their beginnings."""
    people: list[list[int]] = []
    numbers: list[int] = []
    for index, trail in enumerate(trails):
        free = [k for k, own in enumerate(people) if not any(_together(trails[j], trail) for j in own)]
        scores = {k: _likeness([trails[j] for j in people[k]], trail, cuts) for k in free}
        best = max(scores, key=lambda k: scores[k], default=None)
        if best is None or scores[best] <= 0:
            best = len(people)
            people.append([])
        people[best].append(index)
        numbers.append(best)
    return numbers


def _together(a: Trail, b: Trail) -> bool:
    return a.first < b.stop and b.first < a.stop


def _likeness(known: Sequence[Trail], trail: Trail, cuts: Sequence[int]) -> float:
    """Above 0 for the same person."""
    vectors = [vector for other in known for vector in other.vectors]
    if vectors and trail.vectors:
        return cosine(_sum(vectors), _sum(trail.vectors)) - SAME
    last = max(known, key=lambda other: other.stop)
    if trail.first - last.stop > _AWAY or any(last.stop <= cut <= trail.first for cut in cuts):
        return 0.0
    before, after = last.meshes[-1], trail.meshes[0]
    assert before is not None and after is not None  # noqa: PT018 - trails are trimmed
    if float(np.linalg.norm(middle(before) - middle(after))) > _STEP * size_of(before):
        return 0.0
    return 1 - difference(Appearance(last.small), Appearance(trail.small))


def _sum(vectors: Sequence[Floats]) -> Floats:
    return np.asarray(np.sum(vectors, axis=0), np.float32)

"""Move a target mesh towards the source's proportions.

The nose follows fully; eyes, brows and mouth move only as groups (their place, not their expression); the outline
stays. Knows meshes, no pictures.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import fit_similarity
from shared.vision.canonical import BROW_A, BROW_B, EYE_A, EYE_B, LIPS_INNER, LIPS_OUTER, OVAL, canonical
from shared.vision.protocols import Floats

_NOSE = [
    1, 2, 4, 5, 6, 19, 94, 97, 98, 99, 115, 129, 131, 134, 168, 195, 197, 198, 209, 217, 220, 236, 240, 326, 327, 328,
    344, 358, 360, 363, 370, 420, 429, 437, 440, 45, 275, 48, 278, 64, 294, 49, 279, 102, 331,
]  # fmt: skip
_CHEEKS = [50, 280, 117, 346, 101, 330, 205, 425, 187, 411]
_RIGID = [*OVAL, 33, 133, 362, 263, 168, 6, 197, 195, 5, 4, 1, 2, 98, 327]
"""Vertices that hardly move with expression: they align the two heads."""
_GROUPS = ((EYE_A, 1.0), (EYE_B, 1.0), (BROW_A, 0.7), (BROW_B, 0.7), (LIPS_OUTER + LIPS_INNER, 0.8))
_REACH = 0.35
"""Width of the interpolation kernel in eye distances."""
_SMOOTHING = 0.02
_LIMIT = 0.07
"""Farthest move, as a part of the face width."""


class _Handles(NamedTuple):
    vertices: NDArray[np.intp]
    spans: list[slice]
    """Of the outline, the groups, the nose and the cheeks within `vertices`."""
    weights: Floats
    """[468, handles]: moves of the handles to moves of all vertices."""


def reshape(mesh: Floats, source: Floats, amount: float) -> Floats:
    """[468, 3]: `mesh` with x and y moved by `amount` (0..1) of the way to the source's proportions."""
    handles = _handles()
    fit = fit_similarity(source[_RIGID], mesh[_RIGID])
    wanted = (fit.apply(source.astype(np.float64)) - mesh)[:, :2]
    moves = wanted[handles.vertices]
    outline, *groups, _, cheeks = handles.spans
    moves[outline] = 0
    for span, (_, weight) in zip(groups, _GROUPS, strict=True):
        moves[span] = moves[span].mean(0) * weight
    moves[cheeks] *= 0.5
    spread = handles.weights @ moves
    spread[OVAL] = 0
    length = np.linalg.norm(spread, axis=1, keepdims=True)
    spread *= np.minimum(1, _LIMIT * np.ptp(mesh[:, 0]) / (length + 1e-6))
    moved = mesh.copy()
    moved[:, :2] += (amount * spread).astype(np.float32)
    return moved


@cache
def _handles() -> _Handles:
    groups = [sorted(set(g)) for g in (OVAL, *(g for g, _ in _GROUPS), _NOSE, _CHEEKS)]
    ends = np.cumsum([0, *map(len, groups)]).tolist()
    vertices = np.concatenate(groups).astype(np.intp)
    everywhere = canonical().mean[:, :2].astype(np.float64)
    at = everywhere[vertices]
    inner = _kernel(at, at) + _SMOOTHING * np.eye(len(at))
    weights = (_kernel(everywhere, at) @ np.linalg.inv(inner)).astype(np.float32)
    return _Handles(vertices, [slice(a, b) for a, b in pairwise(ends)], weights)


def _kernel(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    distance = np.linalg.norm(a[:, None] - b[None], axis=2)
    return np.asarray(np.exp(-((distance / _REACH) ** 2)), np.float64)

"""What of a source's laugh must not be painted around another's closed mouth.

Its teeth look like a wound there, and the shade under its nose like a moustache. How much is taken back depends on how
much wider the source's mouth is open than the target's: on a target that laughs as well, a laugh is right.
"""

from __future__ import annotations

import cv2
import numpy as np

from shared.vision.protocols import Floats
from shared.vision.swapper.filters import Bools, blur, blur_mask, grow, smoothstep_of
from shared.vision.swapper.uv import UVGrid

_OUTER_EYES, _LIPS_GAP, _LIPS_CORNERS = (33, 263), (13, 14), (61, 291)
_OPEN, _WIDE = 0.1, 0.72
"""Of the distance of the outer eye corners. Measured: smiles up to 0.09 and 0.68, laughs from 0.11 and 0.73."""
_AS_OPEN, _WIDER = 0.03, 0.08
"""Gap beyond the target's from which something is taken back, and from which all is."""
_PALE, _RED, _DARK = 0.1, -0.15, -0.75
"""Teeth are lighter than the skin's light and less red; between them and the lips it is dark (log luma, red chroma)."""
_SHADE = np.float32(0.15)
"""Log luma to which the shade above the lips is limited."""


def laughs(mesh: Floats) -> bool:
    """The mouth is wide or open for its face, and so the cheeks are folded."""
    return _gap(mesh) > _OPEN or _length(mesh, _LIPS_CORNERS) > _WIDE * _length(mesh, _OUTER_EYES)


def wider_open(source: Floats, target: Floats) -> float:
    """0 where the meshes' mouths are about as open, 1 where the source's is open and the target's is not."""
    return smoothstep_of(_gap(source) - _gap(target), _AS_OPEN, _WIDER)


def find_teeth(detail: Floats, mesh: Floats, grid: UVGrid) -> Floats:
    """[size, size]: 1 on teeth and the dark around them, also beyond the lips as the mesh sees them."""
    size = grid.size
    if _gap(mesh) <= _AS_OPEN:
        return np.zeros((size, size), np.float32)
    luma = blur(np.ascontiguousarray(detail[..., 0]), 0.004 * size)
    pale = (luma > _PALE) & (detail[..., 2] < _RED)
    found = _touching(grid.mouth_wide & (pale | (luma < _DARK)), grid.keep_mouth > 0.5)
    return blur_mask(grow(found, 0.02 * size), 0.006 * size)


def without_moustache(detail: Floats, amount: float, grid: UVGrid) -> Floats:
    """A copy with the shade above the lips lifted by that part."""
    luma = detail[..., 0]
    shade = np.minimum(luma, 0)
    lifted = detail.copy()
    lifted[..., 0] += np.float32(amount) * grid.above_lip * (_SHADE * np.tanh(shade / _SHADE) - shade)
    return lifted


def _touching(mask: Bools, seed: Bools) -> Bools:
    """The connected parts of the mask that overlap the seed."""
    _, labels = cv2.connectedComponents(mask.astype(np.uint8))
    return np.isin(labels, np.unique(labels[mask & seed])) & mask


def _gap(mesh: Floats) -> float:
    return _length(mesh, _LIPS_GAP) / max(_length(mesh, _OUTER_EYES), 1e-6)


def _length(mesh: Floats, ends: tuple[int, int]) -> float:
    return float(np.linalg.norm(mesh[ends[0]] - mesh[ends[1]]))

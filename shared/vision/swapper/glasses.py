"""Whether a face wears glasses: a dark bar across the nose, between the eyes.

Looked for in the picture itself, for in the small texture of the analysis a frame is thinner than a texel. Light
frames (gilt, silver, rimless) differ from skin no more than a crease does: they are not found.
"""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.vision.geometry import pose_of
from shared.vision.protocols import Floats, Image
from shared.vision.swapper.filters import blur, sample

_TOP, _BOTTOM, _INNER_EYES = 9, 195, (133, 362)
"""Between the brows, on the nose, and the inner eye corners."""
_ROWS, _COLUMNS = 40, 13
_HALF_WIDTH = 0.18
"""Of the distance of the inner eye corners: between the lenses, where nothing but the bridge is."""
_SLOPES = (-0.9, -0.45, 0.0, 0.45, 0.9)
"""Rows per column: a bar may be tilted against the mesh."""
_HALF_HEIGHTS = (1, 2, 3)
_FLOOR = np.float32(8)
"""Grey levels added before the logarithm."""
_ROOM = 3
_TURNED = (25.0, 35.0)
_DEPTH = (0.08, 0.2)
"""Log luma by which four fifths of the bar are darker than what is above and below it, up to the first and from the
second angle of yaw. Measured on 13 bare faces in any light: up to 0.05, at 33 and 41 degrees, where the far eye lies in
the patch, 0.15; dark frames from 0.10, at these angles from 0.35."""


def has_glasses(image: Image, mesh: Floats) -> bool:
    """`image` BGR; `mesh` [468, 3] in its pixels."""
    return bar_depth(image, mesh) > float(np.interp(abs(pose_of(mesh).yaw), _TURNED, _DEPTH))


def bar_depth(image: Image, mesh: Floats) -> float:
    """Log luma of the darkest bar."""
    patches = _patches(image, mesh)
    narrow = (patches[..., :-2] + patches[..., 1:-1] + patches[..., 2:]) / np.float32(3)
    return max(_depth(narrow, half) for half in _HALF_HEIGHTS)


def _patches(image: Image, mesh: Floats) -> Floats:
    """[slopes, rows, columns] log luma; every patch is sheared by its slope."""
    top, bottom = mesh[_TOP, :2], mesh[_BOTTOM, :2]
    across = (mesh[_INNER_EYES[1], :2] - mesh[_INNER_EYES[0], :2]) * np.float32(_HALF_WIDTH)
    column = np.linspace(-1, 1, _COLUMNS, dtype=np.float32)
    shear = np.array(_SLOPES, np.float32)[:, None, None] * (
        np.arange(_COLUMNS, dtype=np.float32) - np.float32(_COLUMNS // 2)
    )
    row = (np.arange(_ROWS, dtype=np.float32)[:, None] + shear) / np.float32(_ROWS - 1)
    places = top + (bottom - top) * row[..., None] + across * column[:, None]
    grey, low = _around(image, places, float(np.linalg.norm(bottom - top)) / _ROWS)
    x, y = (np.ascontiguousarray((places[..., k] - low[k]).reshape(-1, _COLUMNS), np.float32) for k in range(2))
    return np.asarray(np.log(sample(grey, x, y) + _FLOOR).reshape(row.shape), np.float32)


def _around(image: Image, places: Floats, step: float) -> tuple[Floats, NDArray[np.intp]]:
    """Grey levels of what lies under the places, blurred if they are far apart, and its corner (x, y)."""
    edge = np.array(image.shape[1::-1]) - 1
    low = np.clip(np.floor(places.min((0, 1, 2))).astype(np.intp) - _ROOM, 0, edge)
    high = np.clip(np.ceil(places.max((0, 1, 2))).astype(np.intp) + _ROOM, low, edge)
    cut = image[low[1] : high[1] + 1, low[0] : high[0] + 1]
    grey = cv2.cvtColor(cut, cv2.COLOR_BGR2GRAY).astype(np.float32)
    return (blur(grey, 0.5 * step) if step > 1.2 else grey), low


def _depth(patches: Floats, half: int) -> float:
    """Of a bar 2 half - 1 rows high."""
    sums = np.cumsum(np.pad(patches, ((0, 0), (1, 0), (0, 0))), axis=1)
    high = 2 * half - 1
    means = (sums[:, high:] - sums[:, :-high]) / np.float32(high)
    reach = 2 * half
    bar = np.minimum(means[:, : -2 * reach], means[:, 2 * reach :]) - means[:, reach:-reach]
    fifth = bar.shape[2] // 5
    return float(cast(np.float32, np.partition(bar, fifth, axis=2)[..., fifth].max()))

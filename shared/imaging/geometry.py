"""Points and boxes of a picture: fits between point sets and the part of a frame that a change may touch.

Knows numpy only. Coordinates are x, y (, z) in pixels; boxes are x0, y0, x1, y1 with x1, y1 exclusive.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def similarity(src: ArrayLike, dst: ArrayLike) -> NDArray[np.float32]:
    """The rotation, uniform scale and shift that bring `src` nearest to `dst` (least squares, never a mirror image).

    `src`, `dst`: [n, d], n >= d, any real type. Returns float32 [d, d + 1] for `src @ m[:, :d].T + m[:, d]`;
    for d = 2 it is what cv2.warpAffine takes. All `src` points in one place give scale 0.
    Umeyama, "Least-squares estimation of transformation parameters between two point patterns", PAMI 1991, eq. 40-43.
    """
    a, b = np.asarray(src, np.float64), np.asarray(dst, np.float64)
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    centred = a - mean_a
    u, singular, vt = np.linalg.svd((b - mean_b).T @ centred / len(a))
    signs = np.ones(a.shape[1])
    signs[-1] = np.sign(np.linalg.det(u) * np.linalg.det(vt)) or 1.0
    variance = (centred**2).sum() / len(a)
    scale = (singular * signs).sum() / variance if variance else 0.0
    linear = scale * (u * signs) @ vt
    return np.column_stack([linear, mean_b - linear @ mean_a]).astype(np.float32)


def region(points: ArrayLike, shape: tuple[int, ...], pad: float) -> tuple[int, int, int, int]:
    """The whole-pixel box round `points` [n, 2 or more], widened by `pad` pixels and clipped to `shape` (h, w, ...).

    Points outside the picture give an empty box (x0 == x1 or y0 == y1), never a negative one.
    """
    height, width = shape[:2]
    xy = np.asarray(points, np.float64)[:, :2]
    x0, y0 = np.floor(xy.min(axis=0) - pad).clip(0, (width, height)).astype(int)
    x1, y1 = np.ceil(xy.max(axis=0) + pad).clip((x0, y0), (width, height)).astype(int)
    return int(x0), int(y0), int(x1), int(y1)

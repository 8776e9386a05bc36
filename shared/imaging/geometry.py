"""Points and boxes of a picture: fits between point sets and the part of a frame that a change may touch.

Knows numpy only. Coordinates are x, y (, z) in pixels; boxes are x0, y0, x1, y1 with x1, y1 exclusive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Doubles = NDArray[np.float64]


class Similarity(NamedTuple):
    """b = scale * rotation @ a + translation."""

    scale: float
    rotation: Doubles
    translation: Doubles

    def apply(self, points: Doubles) -> Doubles:
        """[n, d] to [n, d]."""
        return self.scale * points @ self.rotation.T + self.translation

    @property
    def matrix(self) -> Doubles:
        """[d, d + 1]; for d = 2 what cv2.warpAffine takes."""
        return np.column_stack([self.scale * self.rotation, self.translation])


def fit_similarity(a: ArrayLike, b: ArrayLike) -> Similarity:
    """The rotation, uniform scale and shift that bring points `a` nearest to `b` (least squares, never a mirror image).

    `a`, `b`: [n, d], n >= d, any real type. All points of `a` in one place give scale 0.
    Umeyama, "Least-squares estimation of transformation parameters between two point patterns", PAMI 1991, eq. 40-43.
    """
    a64, b64 = np.asarray(a, np.float64), np.asarray(b, np.float64)
    mean_a, mean_b = a64.mean(axis=0), b64.mean(axis=0)
    centred = a64 - mean_a
    left, singular, right = np.linalg.svd((b64 - mean_b).T @ centred / len(a64))
    signs = np.ones(len(singular))
    signs[-1] = np.sign(np.linalg.det(left) * np.linalg.det(right))
    rotation = (left * signs) @ right
    variance = float((centred**2).sum(axis=1).mean())
    scale = float((singular * signs).sum()) / variance if variance else 0.0
    return Similarity(scale, rotation, mean_b - scale * rotation @ mean_a)


def similarity(src: ArrayLike, dst: ArrayLike) -> Doubles:
    """`fit_similarity` as a matrix, float64 [d, d + 1], for `src @ m[:, :d].T + m[:, d]`."""
    return fit_similarity(src, dst).matrix


def invert(matrix: ArrayLike) -> Doubles:
    """The way back of an affine map [2, 3]. Raises numpy.linalg.LinAlgError where there is none."""
    (a, b, x), (c, d, y) = np.asarray(matrix, np.float64).tolist()
    if not (size := a * d - b * c):
        raise np.linalg.LinAlgError("The map has no way back.")
    a, b, c, d = d / size, -b / size, -c / size, a / size
    return np.array([[a, b, -a * x - b * y], [c, d, -c * x - d * y]])


def outline(width: int, height: int, way: Doubles, pad: float = 0) -> Doubles:
    """Where an affine map [2, 3] brings the corners of a picture, `pad` pixels outside of its corner pixels: [4, 2]."""
    left, right, top, bottom = -pad, width - 1 + pad, -pad, height - 1 + pad
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float64)
    return corners @ way[:, :2].T + way[:, 2]


def region(points: ArrayLike, shape: tuple[int, ...], pad: float) -> tuple[int, int, int, int]:
    """The whole-pixel box round `points` [n, 2 or more], widened by `pad` pixels and clipped to `shape` (h, w, ...).

    Points outside the picture give an empty box (x0 == x1 or y0 == y1), never a negative one.
    """
    height, width = shape[:2]
    xy = np.asarray(points, np.float64)[:, :2]
    x0, y0 = np.floor(xy.min(axis=0) - pad).clip(0, (width, height)).astype(int)
    x1, y1 = np.ceil(xy.max(axis=0) + pad).clip((x0, y0), (width, height)).astype(int)
    return int(x0), int(y0), int(x1), int(y1)

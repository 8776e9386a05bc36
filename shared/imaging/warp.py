"""Pictures through an affine map, averaged where they shrink: bilinear sampling alone looks at four pixels and aliases.

Knows numpy and OpenCV. Coordinates are x, y in pixels with whole numbers at pixel centres.
"""

from __future__ import annotations

import math
from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles, region

A = TypeVar("A", NDArray[np.uint8], NDArray[np.float32])

_SHARP = 1.1
"""Source pixels per output pixel up to which four neighbours miss nothing visible."""


def warp(image: A, back: Doubles, size: tuple[int, int], *, border: int = cv2.BORDER_REPLICATE) -> A:
    """`image` [h, w] or [h, w, c] seen through a map: output pixel p is the image at `back` [2, 3] applied to p.

    size: width and height of the output. border: what is seen beyond the image (cv2.BORDER_*; constant is 0).
    Shrinking s-fold, the image is first averaged over squares of ceil(s / 2) pixels, then sampled at twice the
    output's density and averaged 2 x 2: the mean over the output pixel's own, turned square.
    """
    step = math.sqrt(abs(float(np.linalg.det(back[:, :2]))))
    if step <= _SHARP:
        return _sample(image, back, size, border)
    image, back = _averaged(image, back, size, math.ceil(step / 2), border)
    width, height = size
    dense = np.column_stack([back[:, :2] / 2, back[:, 2] - back[:, :2] @ (0.25, 0.25)])
    return _area(_sample(image, dense, (2 * width, 2 * height), border), size)


def _sample(image: A, back: Doubles, size: tuple[int, int], border: int) -> A:
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cast(A, cv2.warpAffine(image, back, size, flags=flags, borderMode=border))


def _area(image: A, size: tuple[int, int]) -> A:
    return cast(A, cv2.resize(image, size, interpolation=cv2.INTER_AREA))


def _averaged(image: A, back: Doubles, size: tuple[int, int], n: int, border: int) -> tuple[A, Doubles]:
    """The part of the image that is looked at, n-fold smaller, and the map that leads into it."""
    if n == 1:
        return image, back
    width, height = size
    corners = np.array([[-1, -1], [width, -1], [width, height], [-1, height]])
    x0, y0, x1, y1 = region(corners @ back[:, :2].T + back[:, 2], image.shape, 2 * n)
    if x1 <= x0 or y1 <= y0:
        return image, back
    bottom, right = -(y1 - y0) % n, -(x1 - x0) % n
    part = cv2.copyMakeBorder(image[y0:y1, x0:x1], 0, bottom, 0, right, border)
    small = _area(cast(A, part), (part.shape[1] // n, part.shape[0] // n))
    offset = np.array([x0, y0]) + (n - 1) / 2
    return small, np.column_stack([back[:, :2] / n, (back[:, 2] - offset) / n])

"""Pictures through an affine map, averaged where they shrink: bilinear sampling alone looks at four pixels and aliases.

Knows numpy and OpenCV. Coordinates are x, y in pixels with whole numbers at pixel centres. A map `back` [2, 3] leads
from the pixels of the output into the image.
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
"""Image pixels per output pixel up to which four neighbours miss nothing visible."""


def warp(image: A, back: Doubles, size: tuple[int, int], *, border: int = cv2.BORDER_REPLICATE) -> A:
    """`image` [h, w] or [h, w, c] seen through `back`, `size` (width, height) pixels of it.

    border: what is seen beyond the image (cv2.BORDER_*; constant is 0).
    Shrinking s-fold, the image is first averaged over squares of ceil(s / 2) pixels, then sampled at twice the
    output's density and averaged 2 x 2: together about the mean over each output pixel's own, turned square.
    """
    if _step(back) > 2:
        image, back = _seen(image, back, size)
    return sample(*shrink(image, back, border=border), size, border=border)


def shrink(image: A, back: Doubles, *, border: int = cv2.BORDER_REPLICATE) -> tuple[A, Doubles]:
    """The first half of `warp`: the image averaged over squares, if the map shrinks that much, and the map into it."""
    n = math.ceil(_step(back) / 2)
    height, width = image.shape[:2]
    if n <= 1 or min(height, width) < n:
        return image, back
    whole = cv2.copyMakeBorder(image, 0, -height % n, 0, -width % n, border) if height % n or width % n else image
    return _mean(cast(A, whole), (-(-width // n), -(-height // n))), _moved(back, (n - 1) / 2) / n


def sample(image: A, back: Doubles, size: tuple[int, int], *, border: int = cv2.BORDER_REPLICATE) -> A:
    """The second half: bilinear, at twice the density where the map still shrinks."""
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    if _step(back) <= _SHARP:
        return cast(A, cv2.warpAffine(image, back, size, flags=flags, borderMode=border))
    dense = np.column_stack([back[:, :2] / 2, back[:, 2] - back[:, :2].sum(axis=1) / 4])
    twice = (2 * size[0], 2 * size[1])
    return _mean(cast(A, cv2.warpAffine(image, dense, twice, flags=flags, borderMode=border)), size)


def _step(back: Doubles) -> float:
    return math.sqrt(abs(back[0, 0] * back[1, 1] - back[0, 1] * back[1, 0]))


def _moved(back: Doubles, origin: float | tuple[int, int]) -> Doubles:
    """The map into the image whose first pixel is `origin` of the old one."""
    return np.column_stack([back[:, :2], back[:, 2] - origin])


def _mean(image: A, size: tuple[int, int]) -> A:
    return cast(A, cv2.resize(image, size, interpolation=cv2.INTER_AREA))


def _seen(image: A, back: Doubles, size: tuple[int, int]) -> tuple[A, Doubles]:
    """The part of the image that the output shows, so that a face costs the same in a frame of any size."""
    width, height = size
    corners = np.array([[-1, -1], [width, -1], [width, height], [-1, height]])
    x0, y0, x1, y1 = region(corners @ back[:, :2].T + back[:, 2], image.shape, 2 * _step(back))
    if x1 <= x0 or y1 <= y0:
        return image, back
    return cast(A, image[y0:y1, x0:x1]), _moved(back, (x0, y0))

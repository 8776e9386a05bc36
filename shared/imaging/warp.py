"""Pictures through an affine map, averaged where they shrink: bilinear sampling alone looks at four pixels and aliases.

Knows numpy and OpenCV. Coordinates are x, y in pixels with whole numbers at pixel centres. A map `back` [2, 3] leads
from the pixels of the output into the image.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles, outline, region

A = TypeVar("A", bound=NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.float32])

_SHARP = 1.1
"""Image pixels per output pixel up to which four neighbours miss nothing visible."""
_DENSEST = 4
"""Samples across an output pixel. Averaging squares first is cheaper and softer: only what shrinks more is."""
_TILE = 256
"""Side, in samples, of the pieces in which pictures are worked on: their few arrays stay in a core's cache, and no
memory is asked of the system."""


def warp(image: A, back: Doubles, size: tuple[int, int]) -> A:
    """[h, w] or [h, w, 3] seen through `back`, `size` (width, height) pixels of it; the image's edge repeats beyond it.

    Where it shrinks, an output pixel is the mean of m x m samples of its own, turned square, no further apart than
    the image's pixels; shrunk more than 4-fold, the image is averaged over squares of whole pixels before.
    """
    if density(back) == 1:
        return bilinear(image, back, size)
    small, into = shrink(*_seen(image, back, size))
    width, height = size
    result = cast(A, np.empty((height, width, *image.shape[2:]), image.dtype))
    for y, rows in pieces(0, height, tile(into), height):
        for x, columns in pieces(0, width, tile(into), width):
            piece = sample(small, moved(into, x, y), (columns, rows))
            result[y : y + rows, x : x + columns] = piece[: height - y, : width - x]
    return result


def coarse(image: A, back: Doubles, size: tuple[int, int]) -> A:
    """`warp` at a part of the cost: whole squares of pixels are averaged first, as large as an output pixel."""
    part, into = _seen(image, back, size)
    n = max(1, min(int(_step(back)), *part.shape[:2]))
    if n > 1:
        height, width = part.shape[0] // n, part.shape[1] // n
        part = _mean(cast(A, part[: height * n, : width * n]), (width, height))
        into = _within(into, (n - 1) / 2) / n
    return sample(part, into, size)


def density(back: Doubles) -> int:
    """Samples across an output pixel: 1 where the image has no noticeably more pixels than the output."""
    step = _step(back)
    return 1 if step <= _SHARP else math.ceil(step / math.ceil(step / _DENSEST))


def shrink(image: A, back: Doubles, *, border: int = cv2.BORDER_REPLICATE) -> tuple[A, Doubles]:
    """The first half of `warp`: the image averaged over squares, if the map shrinks that much, and the map into it.

    border: what is seen beyond the image (cv2.BORDER_*; constant is 0).
    """
    n = math.ceil(_step(back) / _DENSEST)
    height, width = image.shape[:2]
    if n <= 1 or min(height, width) < n:
        return image, back
    whole = cv2.copyMakeBorder(image, 0, -height % n, 0, -width % n, border) if height % n or width % n else image
    return _mean(cast(A, whole), (-(-width // n), -(-height // n))), _within(back, (n - 1) / 2) / n


def sample(image: A, back: Doubles, size: tuple[int, int], *, border: int = cv2.BORDER_REPLICATE) -> A:
    """The second half: m x m bilinear samples an output pixel, averaged."""
    m = density(back)
    if m == 1:
        return bilinear(image, back, size, border=border)
    dense = np.column_stack([back[:, :2] / m, back[:, 2] - back[:, :2].sum(axis=1) * (m - 1) / (2 * m)])
    samples = bilinear(image, dense, (m * size[0], m * size[1]), border=border)
    if m == 2 and samples.dtype == np.uint8:  # OpenCV's own mean of four bytes rounds halves up: an eighth too bright
        return cast(A, cv2.convertScaleAbs(_mean(samples.astype(np.float32), size)))
    return _mean(samples, size)


def framed(image: A, back: Doubles) -> tuple[A, Doubles, int]:
    """An image that is enlarged, with its edge repeated as far as `sample` looks for an output pixel that shows it; the
    map into it, and what lies further out (cv2.BORDER_*).

    OpenCV repeats an edge many times slower than it samples. What is not enlarged has few pixels beyond, and is large.
    """
    if (step := _step(back)) > 1:
        return image, back, cv2.BORDER_REPLICATE
    room = 2 + math.ceil(step)
    wide = cv2.copyMakeBorder(image, room, room, room, room, cv2.BORDER_REPLICATE)
    return cast(A, wide), _within(back, -room), cv2.BORDER_CONSTANT


def bilinear(image: A, back: Doubles, size: tuple[int, int], *, border: int = cv2.BORDER_REPLICATE) -> A:
    """What is smooth needs no more than this."""
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cast(A, cv2.warpAffine(image, back, size, flags=flags, borderMode=border))


def moved(back: Doubles, x: int, y: int) -> Doubles:
    """The map of that part of the output which starts at pixel x, y."""
    result = back.copy()
    result[:, 2] += back[:, 0] * x + back[:, 1] * y
    return result


def tile(back: Doubles) -> int:
    return -(-_TILE // density(back))


def pieces(low: int, high: int, most: int, limit: int) -> Iterator[tuple[int, int]]:
    """Start and length of equal parts of low..high, none longer than `most`, those that touch 0..limit.

    The last may reach beyond `high`.
    """
    length = -(-(high - low) // -(-(high - low) // most))
    first = low + max(0, -low // length) * length
    return ((start, length) for start in range(first, min(high, limit), length))


def _step(back: Doubles) -> float:
    return math.sqrt(abs(back[0, 0] * back[1, 1] - back[0, 1] * back[1, 0]))


def _within(back: Doubles, origin: float | tuple[int, int]) -> Doubles:
    """The map into the part of the image that starts at `origin`."""
    result = back.copy()
    result[:, 2] -= origin
    return result


def _mean(image: A, size: tuple[int, int]) -> A:
    return cast(A, cv2.resize(image, size, interpolation=cv2.INTER_AREA))


def _seen(image: A, back: Doubles, size: tuple[int, int]) -> tuple[A, Doubles]:
    """The part of the image that the output shows, so that a face costs the same in a frame of any size."""
    x0, y0, x1, y1 = region(outline(*size, back, 1), image.shape, 2 * _step(back))
    if x1 <= x0 or y1 <= y0:
        return image, back
    return cast(A, image[y0:y1, x0:x1]), _within(back, (x0, y0))

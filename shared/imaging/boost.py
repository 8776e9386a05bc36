"""Pixel boost: a crop of k times a network's side, seen as k x k whole faces that interleave.

Knows numpy only. The tiles go through the network as one batch; the half-pixel term that makes each of them a face at
the template's place is part of the alignment (shared.vision.crops.alignment).
"""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", NDArray[np.uint8], NDArray[np.float32])


def split(crop: A, k: int) -> A:
    """[k s, k s, c] -> [k * k, s, s, c]: tile i * k + j is every k-th pixel from row i and column j on.

    Of each k x k square of the crop every tile has one pixel, its phase: i - (k - 1) / 2 rows and j - (k - 1) / 2
    columns from the square's middle. So every tile shows the whole face, and their mean is the crop averaged down.
    """
    side, channels = crop.shape[0] // k, crop.shape[2]
    tiles = _pixels(crop).reshape(side, k, side, k).transpose(1, 3, 0, 2)
    return cast(A, np.ascontiguousarray(tiles).view(crop.dtype).reshape(k * k, side, side, channels))


def join(tiles: A, k: int) -> A:
    """The way back of `split`: [k * k, s, s, c] -> [k s, k s, c]."""
    side, channels = tiles.shape[1], tiles.shape[3]
    crop = _pixels(tiles).reshape(k, k, side, side).transpose(2, 0, 3, 1)
    return cast(A, np.ascontiguousarray(crop).view(tiles.dtype).reshape(k * side, k * side, channels))


def _pixels(image: A) -> NDArray[np.void]:
    """One item a pixel: numpy moves these several times faster than rows of three numbers."""
    pixel = np.dtype((np.void, image.itemsize * image.shape[-1]))
    return cast("NDArray[np.void]", np.ascontiguousarray(image).view(pixel))

"""Pixel boost: a crop of k times a network's side, seen as k x k whole faces that interleave.

Knows numpy only. The tiles go through the network as one batch; the half-pixel term that makes each of them a face at
the template's place is part of the alignment (shared.vision.crops).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", NDArray[np.uint8], NDArray[np.float32])


def split(crop: A, k: int) -> A:
    """[k s, k s, c] -> [k * k, s, s, c]: tile i * k + j is every k-th pixel from row i and column j on.

    Of each k x k square of the crop every tile has one pixel, so all show the whole face, each at its own phase.
    """
    side = crop.shape[0] // k
    tiles = crop.reshape(side, k, side, k, -1).transpose(1, 3, 0, 2, 4)
    return np.ascontiguousarray(tiles).reshape(k * k, side, side, -1)


def join(tiles: A, k: int) -> A:
    """The way back of `split`: [k * k, s, s, c] -> [k s, k s, c]."""
    side, channels = tiles.shape[1], tiles.shape[3]
    crop = tiles.reshape(k, k, side, side, channels).transpose(2, 0, 3, 1, 4)
    return np.ascontiguousarray(crop).reshape(k * side, k * side, channels)

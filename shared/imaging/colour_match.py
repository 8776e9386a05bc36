"""A new face in the colours of the old: mean and spread brought to those of the crop it replaces.

Knows numpy and OpenCV. Crops are BGR, levels 0..255.
"""

from __future__ import annotations

from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

A = TypeVar("A", NDArray[np.uint8], NDArray[np.float32])

_CORE = 0.9
"""Mask value from which a pixel is the face's own: feathered edges hold hair and background."""
_LEAST = 64
"""Fewer pixels of core than this say nothing about a face's colour."""
_GAIN = (0.7, 1.4)
_SHIFT = 40.0
"""Bounds of the change of spread and of the mean (levels): a hand or a red lamp must not repaint the face."""
_TO_OPPONENT = np.array([[0.114, 0.587, 0.299], [0.886, -0.587, -0.299], [-0.114, -0.587, 0.701]])
"""BGR to luma, blue minus luma, red minus luma (ITU-R BT.601): nearly uncorrelated for skin."""
_FROM_OPPONENT = np.linalg.inv(_TO_OPPONENT)
_SIDE = 128
"""Statistics are taken at this side at most; averages lose nothing by it."""


def match_colour(crop: A, reference: NDArray[np.uint8], mask: NDArray[np.float32]) -> A:
    """`crop` [side, side, 3] with the colour statistics of `reference` (same shape), both measured on the mask's core.

    mask: float32 [side, side], 1 on the face. Returns a new array of the crop's type, uint8 rounded, float32 not
    clipped. A mask without a core gives the crop unchanged.
    """
    core = _small(mask) >= _CORE
    if int(core.sum()) < _LEAST:
        return crop.copy()
    mean, spread = _statistics(_small(crop)[core])
    wanted_mean, wanted_spread = _statistics(_small(reference)[core])
    gain = np.clip(wanted_spread / np.maximum(spread, 1e-3), *_GAIN)
    target = mean + np.clip(wanted_mean - mean, -_SHIFT, _SHIFT)
    linear = _FROM_OPPONENT @ (gain[:, None] * _TO_OPPONENT)
    matrix = np.column_stack([linear, _FROM_OPPONENT @ (target - gain * mean)])
    return cast(A, cv2.transform(crop, matrix))


def _small(image: NDArray[np.uint8] | NDArray[np.float32]) -> NDArray[np.float32]:
    side = min(_SIDE, image.shape[0])
    return cast("NDArray[np.float32]", cv2.resize(image.astype(np.float32), (side, side), interpolation=cv2.INTER_AREA))


def _statistics(pixels: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation [3] in opponent colours of BGR pixels [n, 3]."""
    opponent = pixels.astype(np.float64) @ _TO_OPPONENT.T
    return opponent.mean(axis=0), opponent.std(axis=0)

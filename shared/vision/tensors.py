"""Crops to the numbers a network eats and back: planes in RGB, one pass each way, pixel boost included.

Knows numpy and OpenCV. Crops are BGR [side, side, 3]; batches are float32 [n, 3, s, s].
"""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np

from shared.vision.protocols import Floats, Image


def to_tensor(crop: Image, mean: Floats, std: Floats, boost: int = 1) -> Floats:
    """uint8 [boost s, boost s, 3] -> [boost * boost, 3, s, s], (level / 255 - mean) / std in RGB, mean and std [3].

    The tiles are those of shared.imaging.boost.split, without a copy in between.
    """
    side = crop.shape[0] // boost
    tiles = crop.reshape(side, boost, side, boost, 3).transpose(1, 3, 4, 0, 2)[:, :, ::-1]
    planes = np.ascontiguousarray(tiles).reshape(boost * boost, 3, side, side).astype(np.float32)
    planes *= _of_planes(1 / (255 * std))
    planes -= _of_planes(mean / std)
    return planes


def from_tensor(planes: Floats, mean: Floats, std: Floats, boost: int = 1) -> Floats:
    """[boost * boost, 3, s, s] in RGB -> float32 [boost s, boost s, 3] in BGR, levels 0..255, clipped, not rounded.

    mean, std [3] undo the output's own normalisation: zeros and ones where it is 0..1 as it is.
    """
    side = planes.shape[-1]
    phases = planes.reshape(boost, boost, 3, side, side).transpose(2, 3, 0, 4, 1)
    whole = np.empty((3, side, boost, side, boost), np.float32)
    for level, phase, scale, shift in zip(whole, phases[::-1], 255 * std[::-1], 255 * mean[::-1], strict=True):
        np.multiply(phase, np.float32(scale), out=level)
        np.add(level, np.float32(shift), out=level)
        np.clip(level, 0, 255, out=level)
    return cast(Floats, cv2.merge([*whole.reshape(3, boost * side, boost * side)]))


def _of_planes(values: Floats) -> Floats:
    return values.astype(np.float32).reshape(3, 1, 1)

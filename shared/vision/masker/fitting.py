"""Crops at the size that a masker's network sees. Pure array work; knows no model."""

from __future__ import annotations

import cv2
import numpy as np

from shared.vision.protocols import Image


def fitted(crops: Image, size: int) -> Image:
    """uint8 [n, h, w, 3] -> [n, size, size, 3], averaged where it shrinks."""
    if crops.shape[1:3] == (size, size):
        return crops
    interpolation = cv2.INTER_AREA if size < min(crops.shape[1:3]) else cv2.INTER_LINEAR
    result = np.empty((len(crops), size, size, 3), np.uint8)
    for crop, small in zip(crops, result, strict=True):
        cv2.resize(crop, (size, size), dst=small, interpolation=interpolation)
    return result

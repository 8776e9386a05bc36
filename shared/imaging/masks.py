"""Soft masks of square face crops: 1 where the new face shows, 0 where the old one stays.

Knows numpy and OpenCV. Masks are float32 [side, side].
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.float32]
Padding = tuple[float, float, float, float]

_OCCLUSION_SIGMA = 5 / 256
"""Blur of a masker's answer in parts of the crop: the field's 5 pixels at the masker's own 256."""


@lru_cache(maxsize=16)
def box_mask(size: int, blur: float = 0.3, padding: Padding = (0.0, 0.0, 0.0, 0.0)) -> Mask:
    """The crop's square with soft edges, float32 [size, size], read-only and shared: the 16 last used are kept.

    blur: 0..1 of half the side. With amount = int(size * 0.5 * blur) the outer amount // 2 pixels are 0 and a Gaussian
    of sigma amount / 4 softens the step (256 at 0.3: amount 38, border 19, sigma 9.5); cut at two sigma, so that the
    mask ends at the crop's edge and is 1 from `amount` pixels inwards.
    padding: top, right, bottom, left, parts of the side (0..1) that are 0 before the blur.
    """
    amount = int(size * 0.5 * blur)
    top, right, bottom, left = (max(amount // 2, int(size * part)) for part in padding)
    mask = np.outer(_edge(size, top, bottom, amount), _edge(size, left, right, amount))
    mask.setflags(write=False)
    return mask


def _edge(size: int, before: int, after: int, amount: int) -> Mask:
    """One side's profile: the box and its blur are products of a row's and a column's."""
    profile = np.zeros(size)
    profile[before : max(before, size - after)] = 1
    if amount >= 2:
        kernel = cv2.getGaussianKernel(2 * (amount // 2) + 1, amount / 4).ravel()
        profile = np.convolve(profile, kernel, "same")
    return profile.astype(np.float32)


def join(masks: Sequence[Mask]) -> Mask:
    """The least of each pixel, one or more masks of one shape ([side, side] or [n, side, side]); a single one as is."""
    first, *others = masks
    for mask in others:
        first = np.minimum(first, mask)
    return first


def feather(mask: Mask, size: int) -> Mask:
    """A masker's answer [h, w], 0..1, made soft and brought to [size, size].

    The blur is a part of the crop, whatever the sides: sigma = 5 pixels at 256. Then 0.5..1 is stretched to 0..1, so
    that what the masker left out stays out.
    """
    soft = cv2.GaussianBlur(mask, (0, 0), mask.shape[0] * _OCCLUSION_SIGMA)
    soft = cast(Mask, np.clip(soft, 0.5, 1) * 2 - 1)
    if soft.shape[0] == size:
        return soft
    interpolation = cv2.INTER_AREA if size < soft.shape[0] else cv2.INTER_LINEAR
    return cast(Mask, cv2.resize(soft, (size, size), interpolation=interpolation))

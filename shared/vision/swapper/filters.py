"""The few picture filters the swapper is made of, with types.

float32 in, float32 out. Knows numpy and cv2.
"""

from __future__ import annotations

from typing import TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.vision.protocols import Floats

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
A = TypeVar("A", Floats, Bytes)


def smoothstep(x: Floats, low: float, high: float) -> Floats:
    """0 at `low`, 1 at `high` (which may be the smaller one), smooth between."""
    t = np.clip((x - np.float32(low)) / np.float32(high - low), 0, 1)
    return cast(Floats, t * t * (3 - 2 * t))


def smoothstep_of(x: float, low: float, high: float) -> float:
    t = min(1.0, max(0.0, (x - low) / (high - low)))
    return t * t * (3 - 2 * t)


def blur(x: Floats, sigma: float) -> Floats:
    """Gaussian, sigma in pixels."""
    return cast(Floats, cv2.GaussianBlur(x, (0, 0), sigma))


def blur_mask(mask: Bools, sigma: float) -> Floats:
    return blur(mask.astype(np.float32), sigma)


def enlarge(x: Floats, width: int, height: int) -> Floats:
    return cast(Floats, cv2.resize(x, (width, height), interpolation=cv2.INTER_LINEAR))


def reduce(image: A, factor: float) -> A:
    """Smaller picture, averaged so that nothing aliases; factor < 1."""
    return cast(A, cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA))


def sample(image: A, x: Floats, y: Floats, interpolation: int = cv2.INTER_LINEAR) -> A:
    """image at the positions (x, y), float32 maps of one shape in pixels; the picture's edge repeats."""
    return cast(A, cv2.remap(image, x, y, interpolation, borderMode=cv2.BORDER_REPLICATE))


def disc(diameter: float) -> Bytes:
    """Round structuring element, the next odd number of pixels wide."""
    odd = max(1, round(diameter) | 1)
    return cast(Bytes, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (odd, odd)))


def grow(mask: Bools, diameter: float) -> Bools:
    return cv2.dilate(mask.astype(np.uint8), disc(diameter)) > 0

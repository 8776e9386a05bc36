"""A finished picture made smaller: every new pixel is the mean of the area it covers.

Knows OpenCV and numpy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import cv2
import numpy as np

from shared.imaging.codec import Picture, Plane


def reduce(picture: Picture, width: int, height: int) -> Picture:
    """The picture at that size, which is at most its own; a new one unless it has the size already.

    Colours count by their opacity, so that what is under transparent pixels does not bleed into the rest.
    """
    if picture.pixels.shape[:2] == (height, width):
        return picture
    if picture.alpha is None:
        return replace(picture, pixels=_area(picture.pixels, width, height))
    weights = picture.alpha.astype(np.float32)
    weighted = cv2.multiply(picture.pixels, cv2.merge([weights] * 3), dtype=cv2.CV_32F)
    share = cv2.resize(weights, (width, height), interpolation=cv2.INTER_AREA)
    colour = cv2.resize(weighted, (width, height), interpolation=cv2.INTER_AREA)
    seen = share > 0
    pixels = _area(picture.pixels, width, height)
    pixels[seen] = np.rint(colour[seen] / share[seen, None]).astype(np.uint8)
    return replace(picture, pixels=pixels, alpha=np.rint(share).astype(np.uint8))


def _area(pixels: Plane, width: int, height: int) -> Plane:
    return cast("Plane", cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA))

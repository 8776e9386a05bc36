"""Face crops back into their frame, in place, touching only the pixels that the crop can reach.

Knows numpy and OpenCV. Frames are uint8 [h, w, 3]; the cost does not depend on their size.
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles, invert, outline
from shared.imaging.warp import bilinear, moved, pieces, sample, shrink, tile

Frame = NDArray[np.uint8]
Plane = NDArray[np.float32]


def paste(frame: Frame, crop: NDArray[np.uint8] | Plane, mask: Plane, matrix: Doubles) -> None:
    """Lay `crop` over `frame` where `mask` says, rounded to the nearest level once, at the end.

    crop: [side, side, 3], levels 0..255. mask: [side, side], 0..1. matrix: [2, 3], frame to crop, from
    shared.vision.crops.align. A crop larger than its place in the frame is averaged down.
    Works in tiles counted from the crop's own corner, so that a face cut by the frame's edge gets the very pixels that
    it would get in a larger frame.
    """
    new, into = shrink(crop.astype(np.float32, copy=False), matrix)
    share, _ = shrink(mask, matrix, border=cv2.BORDER_CONSTANT)
    for x, y, width, height in _tiles(crop.shape[0], matrix, tile(into), frame.shape):
        left, top = max(x, 0), max(y, 0)
        part = frame[top : y + height, left : x + width]
        seen = np.s_[top - y : top - y + part.shape[0], left - x : left - x + part.shape[1]]
        here = moved(into, x, y)
        weight = bilinear(share, here, (width, height), border=cv2.BORDER_CONSTANT)[seen]
        if not weight.any():
            continue
        colours = sample(new, here, (width, height))[seen]
        part[:] = cv2.convertScaleAbs(cv2.blendLinear(colours, part.astype(np.float32), weight, 1 - weight))


def _tiles(side: int, matrix: Doubles, most: int, shape: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
    """x, y, width and height of the pieces that cover the crop's place, as far as they touch the frame."""
    places = outline(side, side, invert(matrix), 1)
    x0, y0 = np.floor(places.min(axis=0)).astype(int).tolist()
    x1, y1 = np.ceil(places.max(axis=0)).astype(int).tolist()
    for y, height in pieces(y0, y1 + 1, most, shape[0]):
        for x, width in pieces(x0, x1 + 1, most, shape[1]):
            yield x, y, width, height

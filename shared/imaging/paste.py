"""Face crops back into their frame, in place, touching only the pixels that the crop can reach.

Knows numpy and OpenCV. Frames are uint8 [h, w, 3]; the cost does not depend on their size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles, invert, outline
from shared.imaging.warp import bilinear, framed, moved, pieces, sample, shrink, tile

Frame = NDArray[np.uint8]
Plane = NDArray[np.float32]
Samples = NDArray[np.uint8] | NDArray[np.uint16]

_NOTHING = cv2.BORDER_CONSTANT


def paste(frame: Frame, crop: NDArray[np.uint8] | Plane, mask: Plane, matrix: Doubles) -> None:
    """Lay `crop` over `frame` where `mask` says, rounded to the nearest level once, at the end.

    crop: [side, side, 3], levels 0..255. mask: [side, side], 0..1. matrix: [2, 3], frame to crop, from
    shared.vision.crops.align. A crop larger than its place in the frame is averaged down.
    Works in tiles counted from the crop's own corner, so that a face cut by the frame's edge gets the very pixels that
    it would get in a larger frame.
    """
    new, beside, beyond = framed(*shrink(crop.astype(np.float32, copy=False), matrix))
    share, into = shrink(mask, matrix, border=_NOTHING)
    for x, y, width, height in _tiles(crop.shape[0], matrix, tile(into), frame.shape):
        left, top = max(x, 0), max(y, 0)
        part = frame[top : y + height, left : x + width]
        seen = np.s_[top - y : top - y + part.shape[0], left - x : left - x + part.shape[1]]
        weight = bilinear(share, moved(into, x, y), (width, height), border=_NOTHING)[seen]
        if not weight.any():
            continue
        colours = sample(new, moved(beside, x, y), (width, height), border=beyond)[seen]
        part[:] = cv2.convertScaleAbs(cv2.blendLinear(colours, part.astype(np.float32), weight, 1 - weight))


def paste_planes(planes: Sequence[Samples], crops: Sequence[Plane], mask: Plane, matrix: Doubles) -> None:
    """`paste` for pictures that are planes: each [h, w], all of one size, gets its own crop [side, side].

    Crops are in the planes' own levels. Where the mask is 0 samples stay bit for bit, whatever their depth.
    """
    new = [framed(*shrink(crop, matrix)) for crop in crops]
    (share, into), shape = shrink(mask, matrix, border=_NOTHING), planes[0].shape
    kind = cv2.CV_8U if planes[0].dtype == np.uint8 else cv2.CV_16U
    for x, y, width, height in _tiles(mask.shape[0], matrix, tile(into), shape):
        left, top = max(x, 0), max(y, 0)
        inside = np.s_[top : min(y + height, shape[0]), left : min(x + width, shape[1])]
        rows, columns = planes[0][inside].shape
        seen = np.s_[top - y : top - y + rows, left - x : left - x + columns]
        weight = bilinear(share, moved(into, x, y), (width, height), border=_NOTHING)[seen]
        if not weight.any():
            continue
        for plane, (crop, beside, beyond) in zip(planes, new, strict=True):
            part = plane[inside]
            level = sample(crop, moved(beside, x, y), (width, height), border=beyond)[seen]
            step = cv2.subtract(level, part, dtype=cv2.CV_32F)
            part[:] = cv2.add(part, cv2.multiply(step, weight), dtype=kind)


def _tiles(side: int, matrix: Doubles, most: int, shape: tuple[int, ...]) -> Iterator[tuple[int, int, int, int]]:
    """x, y, width and height of the pieces that cover the crop's place, as far as they touch the frame."""
    places = outline(side, side, invert(matrix), 1)
    x0, y0 = np.floor(places.min(axis=0)).astype(int).tolist()
    x1, y1 = np.ceil(places.max(axis=0)).astype(int).tolist()
    for y, height in pieces(y0, y1 + 1, most, shape[0]):
        for x, width in pieces(x0, x1 + 1, most, shape[1]):
            yield x, y, width, height

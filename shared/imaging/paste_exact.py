"""insightface's paste-back, pixel for pixel, for comparisons: same mask, same truncation, written in the crop's region.

Facts from insightface 2.1 (MIT), model_zoo/inswapper.py, INSwapper.get. Knows numpy and OpenCV. `paste` is the better
one: it rounds, averages and costs less.
"""

from __future__ import annotations

import math
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles, invert, outline, region

_TOUCHED = 20
"""A frame pixel with this share (of 255) of a crop pixel counts as covered whole."""


def paste_exact(frame: NDArray[np.uint8], crop: NDArray[np.uint8], matrix: Doubles, share: float = 1.0) -> None:
    """Lay `crop` [side, side, 3] over `frame` [h, w, 3] in place; matrix [2, 3], frame to crop; `share` of it, 0..1.

    Within 1 level of INSwapper.get(..., paste_back=True). Positions count from the frame's corner as there: from the
    region's own they round otherwise, and one value in a million differs by 2. What lies before the region is warped
    for nothing, which costs little against the peer's whole frames. A crop beyond the frame changes nothing (there:
    ValueError). An enlarged crop fades out over a whole crop pixel beyond its edge; up to there the mask's size counts.
    """
    side = crop.shape[0]
    box = region(outline(side, side, invert(matrix), 1), frame.shape, 1)
    x0, y0, x1, y1 = box
    if x1 <= x0 or y1 <= y0:
        return
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    white = cv2.warpAffine(np.full((side, side), 255, np.float32), matrix, (x1, y1), flags=flags)[y0:, x0:]
    mask = _soft(cast(NDArray[np.float32], white), box, frame.shape)
    if mask is None:
        return
    new = cv2.warpAffine(crop, matrix, (x1, y1), flags=flags)[y0:, x0:]
    part = frame[y0:y1, x0:x1]
    mask = mask * np.float32(share)
    part[:] = (mask * new + (1 - mask) * part.astype(np.float32)).astype(np.uint8)


def _soft(
    white: NDArray[np.float32], box: tuple[int, int, int, int], shape: tuple[int, ...]
) -> NDArray[np.float32] | None:
    """The warped white square eroded and blurred, [h, w, 1] in 0..1; None where no pixel of it is covered.

    The whole frame's mask is 0 beyond the box: erosion and blur must see that, but for the sides that are the frame's
    own, where OpenCV's borders hold for both.
    """
    white[white > _TOUCHED] = 255
    rows, columns = (np.flatnonzero((white == 255).any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        return None
    size = int(math.sqrt((rows[-1] - rows[0]) * (columns[-1] - columns[0])))
    k, b = max(size // 10, 10), max(size // 20, 5)
    (x0, y0, x1, y1), (height, width) = box, shape[:2]
    inner = (y0 > 0, y1 < height, x0 > 0, x1 < width)
    top, bottom, left, right = ((k + b + 1) * beside for beside in inner)
    wide = cv2.copyMakeBorder(white, top, bottom, left, right, cv2.BORDER_CONSTANT, value=0)
    wide = cv2.GaussianBlur(cv2.erode(wide, np.ones((k, k), np.uint8)), (2 * b + 1, 2 * b + 1), 0)
    mask = wide[top : top + y1 - y0, left : left + x1 - x0, None] / np.float32(255)
    return cast(NDArray[np.float32], mask)

"""Face crops back into their frame, in place, touching only the pixels that the crop can reach.

Knows numpy and OpenCV. Frames are uint8 [h, w, 3]; cost does not depend on their size.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles, invert, region
from shared.imaging.warp import warp

Frame = NDArray[np.uint8]


def paste(
    frame: Frame, crop: NDArray[np.uint8] | NDArray[np.float32], mask: NDArray[np.float32], matrix: Doubles
) -> None:
    """Lay `crop` over `frame` where `mask` says, rounded to the nearest level once, at the end.

    crop: [side, side, 3], levels 0..255. mask: [side, side], 0..1. matrix: [2, 3], frame to crop, from
    shared.vision.crops.align. A crop larger than its place in the frame is averaged down.
    """
    side = crop.shape[0]
    corners = np.array([[0, 0], [side - 1, 0], [side - 1, side - 1], [0, side - 1]], np.float64)
    way = invert(matrix)
    x0, y0, x1, y1 = region(corners @ way[:, :2].T + way[:, 2], frame.shape, 2)
    if x1 <= x0 or y1 <= y0:
        return
    back = np.column_stack([matrix[:, :2], matrix[:, 2] + matrix[:, :2] @ (x0, y0)])
    size = (x1 - x0, y1 - y0)
    new = warp(crop.astype(np.float32), back, size)
    share = warp(mask, back, size, border=cv2.BORDER_CONSTANT)
    part = frame[y0:y1, x0:x1]
    part[:] = cv2.convertScaleAbs(cv2.blendLinear(new, part.astype(np.float32), share, 1 - share))

"""Make a picture, or parts of it, unrecognisable for good: what is thrown away is not there to be restored.

A blur alone can be undone when its kernel is guessed (deconvolution), so the picture is averaged over large cells first
and only the averages are smoothed. Knows OpenCV and numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.imaging.codec import Picture, Plane

_CELLS = 12
"""Averages along a picture's shorter side: shapes of light and colour remain, no face and no body."""
_LINE_CELL = 1.5
"""Side of a cell in heights of a line of text: no letter has a cell of its own."""
_MARGIN = 0.25
"""Parts of a line's height that are covered around its box."""


def whole(picture: Picture) -> Picture:
    """The picture, its alpha too, as `_CELLS` averages along its shorter side."""
    cells = _CELLS / min(picture.pixels.shape[:2])
    alpha = None if picture.alpha is None else _averaged(picture.alpha, cells)
    return Picture(_averaged(picture.pixels, cells), alpha, picture.format)


def lines(plane: Plane, boxes: Sequence[NDArray[np.float32]]) -> None:
    """Cover lines of text in place, in colours or alpha; each box [4, 2] in pixels, corners in order, any rotation."""
    height, width = plane.shape[:2]
    for box in boxes:
        high = max(1.0, min(_side(box, 0, 1), _side(box, 1, 2)))
        x0, y0 = np.maximum(np.floor(box.min(0) - 2 * _MARGIN * high), 0).astype(int)
        x1, y1 = np.minimum(np.ceil(box.max(0) + 2 * _MARGIN * high), (width, height)).astype(int)
        if x0 >= x1 or y0 >= y1:
            continue
        part = plane[y0:y1, x0:x1]
        mask = np.zeros(part.shape[:2], np.uint8)
        cv2.fillPoly(mask, [np.rint(box - (x0, y0)).astype(np.int32)], 1)
        covered = cv2.dilate(mask, np.ones((2 * round(_MARGIN * high) + 1,) * 2, np.uint8)) > 0
        part[covered] = _averaged(part, 1 / (_LINE_CELL * high))[covered]


def _averaged(plane: Plane, scale: float) -> Plane:
    """Cell averages, smoothed while they are enlarged; no cell is smaller than a pixel, and there is at least one."""
    height, width = plane.shape[:2]
    size = (max(1, round(width * min(1.0, scale))), max(1, round(height * min(1.0, scale))))
    small = cv2.GaussianBlur(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), (3, 3), 0)
    return cast("Plane", cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR))


def _side(box: NDArray[np.float32], first: int, second: int) -> float:
    return float(np.linalg.norm(box[second] - box[first]))

"""Pictures and boxes as they are shown and as they are coded: quarter turns.

Knows numpy and the facts. A box is x0, y0, x1, y1 in pixels, x1 and y1 exclusive. Pixels that are not square stay so.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared.video.facts import Facts
from shared.video.formats import layout

Box: TypeAlias = tuple[int, int, int, int]


def upright(image: NDArray[np.uint8], rotation: int) -> NDArray[np.uint8]:
    """A coded picture [h, w, ...] as it is shown: turned against the clock by `rotation` degrees, in one piece."""
    return np.ascontiguousarray(np.rot90(image, rotation // 90)) if rotation else image


def back(image: NDArray[np.uint8], rotation: int) -> NDArray[np.uint8]:
    """The way back of `upright`."""
    return upright(image, -rotation % 360)


def clip(box: Box, facts: Facts) -> Box:
    """The part of a box that lies in the picture as it is shown; it may be empty."""
    width, height = facts.shown
    x0, y0 = min(max(box[0], 0), width), min(max(box[1], 0), height)
    return x0, y0, max(min(box[2], width), x0), max(min(box[3], height), y0)


def coded(box: Box, facts: Facts) -> Box:
    """A box of the upright picture in the coded one."""
    x0, y0, x1, y1 = box
    width, height = facts.width, facts.height
    match facts.rotation % 360:
        case 90:
            return width - y1, x0, width - y0, x1
        case 180:
            return width - x1, height - y1, width - x0, height - y0
        case 270:
            return y0, height - x1, y1, height - x0
    return box


def aligned(box: Box, facts: Facts) -> Box:
    """A coded box, grown until it holds whole colour samples (the last of an odd size is whole where it ends)."""
    columns, rows = (1 << shift for shift in layout(facts.pixel_format).shift)
    x0, y0, x1, y1 = box
    return (
        x0 - x0 % columns,
        y0 - y0 % rows,
        min(-(-x1 // columns) * columns, facts.width),
        min(-(-y1 // rows) * rows, facts.height),
    )

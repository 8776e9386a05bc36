"""Between the numbers of a video and red, green and blue: matrices, ranges and bit depths.

Knows numpy, the formats and the facts.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shared.video.facts import Facts
from shared.video.formats import layout

Doubles = NDArray[np.float64]

_WEIGHTS = {
    1: (0.2126, 0.0722),
    4: (0.30, 0.11),
    5: (0.299, 0.114),
    6: (0.299, 0.114),
    7: (0.212, 0.087),
    9: (0.2627, 0.0593),
    10: (0.2627, 0.0593),
}
"""Shares of red and blue in the luma (ITU-T H.273, table 4): BT.709, FCC, BT.601 twice, SMPTE 240M, BT.2020. A video of
constant luminance (10) is read as if it were not: its difference is small at a face's colours."""
_UNSPECIFIED, _HD = 2, 720


def weights(facts: Facts) -> tuple[float, float]:
    """Red's and blue's share in the luma. Where nobody says, BT.601 below 720 lines and BT.709 from there on."""
    matrix = facts.colour.matrix
    guess = 1 if min(facts.width, facts.height) >= _HD or matrix != _UNSPECIFIED else 6
    return _WEIGHTS.get(matrix, _WEIGHTS[guess])


@lru_cache(maxsize=32)
def from_bgr(facts: Facts) -> Doubles:
    """[planes, 3]: what one unit of blue, green and red (0..1) adds to each plane's samples; float64."""
    form = layout(facts.pixel_format)
    red, blue = weights(facts)
    luma = np.array([blue, 1 - red - blue, red])
    steps, colour_steps = _steps(facts)
    if form.kind == "gbr":
        return np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], np.float64) * steps
    if form.kind == "gray":
        return luma[None] * steps
    cb = (np.array([1, 0, 0]) - luma) / (2 * (1 - blue))
    cr = (np.array([0, 0, 1]) - luma) / (2 * (1 - red))
    return np.array([luma * steps, cb * colour_steps, cr * colour_steps])


@lru_cache(maxsize=32)
def to_bgr(facts: Facts) -> Doubles:
    """[3, planes + 1]: blue, green and red (0..1) from the planes' samples and 1; float64."""
    forward = from_bgr(facts)
    inverse = np.ones((3, 1)) / forward.sum() if len(forward) == 1 else np.linalg.inv(forward)
    return np.column_stack([inverse, -inverse @ zeros(facts)])


def legal(facts: Facts, plane: int) -> tuple[int, int]:
    """Least and greatest sample of a plane that stands for a colour."""
    form = layout(facts.pixel_format)
    if facts.colour.full_range or form.kind == "gbr":
        return 0, (1 << form.depth) - 1
    unit = 1 << (form.depth - 8)
    return 16 * unit, (240 if plane else 235) * unit


def _steps(facts: Facts) -> tuple[float, float]:
    """Samples from black to white, and from one end of a colour difference to the other (H.273, equations 20 to 31)."""
    form = layout(facts.pixel_format)
    if facts.colour.full_range or form.kind == "gbr":
        return float((1 << form.depth) - 1), float((1 << form.depth) - 1)
    unit = 1 << (form.depth - 8)
    return 219.0 * unit, 224.0 * unit


def zeros(facts: Facts) -> Doubles:
    """[planes]: samples that stand for black and for no colour; float64."""
    form = layout(facts.pixel_format)
    if form.kind == "gbr":
        return np.zeros(3)
    middle = 1 << (form.depth - 1)
    black = 0 if facts.colour.full_range else 16 << (form.depth - 8)
    return np.array([black] if form.kind == "gray" else [black, middle, middle], np.float64)

"""How large a result is: by where it is shown and by what the tenant may get, never larger than it was made.

The swap works on the target's own pixels and the finished picture is reduced when it is published: the cost of a swap
is the face's, not the frame's, and a face aligned from fewer pixels would be a worse one. Pure numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

LINES: Mapping[str, int] = {"mobile": 720, "web": 1080, "original": 16_384}
"""Shorter side of a 16:9 frame by the kind of client; no picture taken in has more than the last."""
MOST_ENLARGED = 2160
"""4K: what an upscaler made is never larger, unless the target itself was."""


class Extent(NamedTuple):
    width: int
    height: int


def fitted(size: Extent, lines: int) -> Extent:
    """The largest size of the same shape that fits a 16:9 frame of so many lines, upright or on its side; at most
    `size` itself."""
    longer, shorter = max(size), min(size)
    ratio = min(Fraction(1), Fraction(lines, shorter), Fraction(lines * 16, 9 * longer))
    return Extent(*(max(1, round(side * ratio)) for side in size))


def result_size(made: Extent, target: Extent, client: str, most_lines: int) -> Extent:
    """What the published picture measures.

    made: what there is to publish; larger than `target`, the picture that was sent, only after an upscaler.
    client: key of LINES. most_lines: the tenant's limit. Neither side is ever larger than made.
    """
    size = made
    if made.width > target.width or made.height > target.height:
        ceiling = fitted(made, MOST_ENLARGED)
        size = ceiling if ceiling.width >= target.width else Extent(*target)
    for lines in (LINES[client], most_lines):
        size = fitted(size, lines)
    return size

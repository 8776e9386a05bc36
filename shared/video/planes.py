"""What analysis sees of a frame, and how a change of it goes back: as a difference, in the frame's own numbers.

`bgr` and `small` give ordinary pictures, upright, blue, green and red, uint8; a video of high dynamic range is shown
as `shared.video.tone` says. `add` adds what was changed of such a picture to the planes: where nothing was changed
they stay bit for bit, and the rest keeps its depth, range and transfer. Boxes are upright, x0, y0, x1, y1, inside the
picture, in coded pixels that need not be square. The work grows with the box, not with the frame. Colour samples are
taken to lie in the middle of their pixels. Knows numpy, OpenCV and the facts.
"""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.video import tone
from shared.video.facts import Facts
from shared.video.formats import Layout, layout
from shared.video.frame import Frame, Samples
from shared.video.matrices import from_bgr, legal, to_bgr, zeros
from shared.video.turning import Box, aligned, back, coded, upright

Picture = NDArray[np.uint8]
Reals = NDArray[np.float32]

_GAP = 16
"""Columns without a change between two parts that are changed apart: one face and the next."""
_WHITE = 4095.0
"""Of the signal from which a picture of high dynamic range is made."""


def bgr(frame: Frame, box: Box, facts: Facts) -> Picture:
    """The pixels of a box, [y1 - y0, x1 - x0, 3]."""
    inner = coded(box, facts)
    outer = aligned(inner, facts)
    parts = _cut(frame.planes, outer, layout(facts.pixel_format))
    picture = coloured(parts, (outer[2] - outer[0], outer[3] - outer[1]), facts)
    x, y = inner[0] - outer[0], inner[1] - outer[1]
    inside = picture[y : y + inner[3] - inner[1], x : x + inner[2] - inner[0]]
    return np.ascontiguousarray(upright(inside, facts.rotation))


def small(frame: Frame, longest: int, facts: Facts) -> Picture:
    """The whole picture, its longer side `longest` pixels, never enlarged."""
    scale = min(1.0, longest / max(facts.width, facts.height))
    size = max(1, round(facts.width * scale)), max(1, round(facts.height * scale))
    planes = frame.planes[: 1 if layout(facts.pixel_format).kind == "gray" else 3]
    return upright(coloured([_shrunk(plane, size) for plane in planes], size, facts), facts.rotation)


def levels(picture: Picture | Reals, facts: Facts) -> list[Reals]:
    """What blue, green and red [h, w, 3], 0..255, are in each plane's own samples, all [h, w]; not for HDR."""
    way = np.column_stack([from_bgr(facts) / 255, zeros(facts)])
    signal = cv2.transform(picture.astype(np.float32, copy=False), way)
    parts = cv2.split(signal)
    return [np.clip(part, *legal(facts, index)) for index, part in enumerate(parts)]


def add(frame: Frame, box: Box, before: Picture, after: Picture, facts: Facts) -> None:
    """Change the planes, in place, by what changed from `before` (which `bgr` gave for the box) to `after`."""
    for x, y, width, height in _changed(before, after):
        inner = coded((box[0] + x, box[1] + y, box[0] + x + width, box[1] + y + height), facts)
        old, new = (back(image[y : y + height, x : x + width], facts.rotation) for image in (before, after))
        _add(frame, inner, _difference(old, new, facts), facts)


def _changed(before: Picture, after: Picture) -> list[Box]:
    """x, y, width and height of parts beside each other that hold every change."""
    apart = cv2.absdiff(before, after)
    lines = cv2.reduce(apart.reshape(len(apart), -1), 0, cv2.REDUCE_MAX)
    columns = np.flatnonzero(lines.reshape(-1, 3).any(1))
    if not len(columns):
        return []
    found: list[Box] = []
    for run in np.split(columns, np.flatnonzero(np.diff(columns) > _GAP) + 1):
        left, width = int(run[0]), int(run[-1] - run[0]) + 1
        rows = np.flatnonzero(apart[:, left : left + width].any((1, 2)))
        found.append((left, int(rows[0]), width, int(rows[-1] - rows[0]) + 1))
    return found


def _difference(old: Picture, new: Picture, facts: Facts) -> Reals:
    """Of the signals, 255 being white; exactly 0 where nothing changed."""
    transfer = facts.colour.transfer
    if tone.is_hdr(transfer):
        return (tone.signal(new, transfer) - tone.signal(old, transfer)) * np.float32(255)
    return cast("Reals", cv2.subtract(new, old, dtype=cv2.CV_32F))


def _add(frame: Frame, inner: Box, change: Reals, facts: Facts) -> None:
    """`change`: of a coded box, blue, green and red. Each plane gets its own share, at its own resolution."""
    form, outer = layout(facts.pixel_format), aligned(inner, facts)
    change, shares = _framed(change, inner, outer, form), from_bgr(facts) / 255
    for index, part in enumerate(_cut(frame.planes, outer, form)):
        height, width = part.shape
        factor = change.shape[1] // width, change.shape[0] // height
        if factor != (1, 1):  # averages of what changed are what the averages change by
            size = change.shape[1] // factor[0], change.shape[0] // factor[1]
            change = cast("Reals", cv2.resize(change, size, interpolation=cv2.INTER_AREA))
        step = cv2.transform(change, shares[index : index + 1])[:height, :width]
        _raise(part, cast("Reals", step), legal(facts, index))


def _framed(change: Reals, inner: Box, outer: Box, form: Layout) -> Reals:
    """With nothing changed around it, in whole colour samples: at an odd edge the last column or row once more."""
    columns, rows = (1 << shift for shift in form.shift)
    left, top, right, bottom = inner[0] - outer[0], inner[1] - outer[1], outer[2] - inner[2], outer[3] - inner[3]
    if left or top or right or bottom:
        change = cast("Reals", cv2.copyMakeBorder(change, top, bottom, left, right, cv2.BORDER_CONSTANT, value=0))
    height, width = change.shape[:2]
    if width % columns or height % rows:
        below, beside = -height % rows, -width % columns
        change = cast("Reals", cv2.copyMakeBorder(change, 0, below, 0, beside, cv2.BORDER_REPLICATE))
    return change


def _raise(part: Samples, step: Reals, bounds: tuple[int, int]) -> None:
    """The samples of one plane; none leaves the range that stands for colours but where it was outside before."""
    kind = cv2.CV_8U if part.dtype == np.uint8 else cv2.CV_16U
    low, high = np.minimum(part, bounds[0]), np.maximum(part, bounds[1])
    part[:] = np.clip(cast("Samples", cv2.add(part, step, dtype=kind)), low, high)


def _cut(planes: tuple[Samples, ...], box: Box, form: Layout) -> list[Samples]:
    """An aligned box of every plane but the alpha."""
    x0, y0, x1, y1 = box
    across, down = form.shift
    rest = np.s_[y0 >> down : -(-y1 >> down), x0 >> across : -(-x1 >> across)]
    colours = () if form.kind == "gray" else planes[1:3]
    return [planes[0][y0:y1, x0:x1], *(plane[rest] for plane in colours)]


def _shrunk(plane: Samples, size: tuple[int, int]) -> Samples:
    """Halved by averages as long as it is twice too large, which is fast, and then by interpolation."""
    while plane.shape[1] >= 2 * size[0] and plane.shape[0] >= 2 * size[1]:
        height, width = plane.shape[0] // 2, plane.shape[1] // 2
        plane = _resized(plane[: 2 * height, : 2 * width], (width, height), cv2.INTER_AREA)
    return _resized(plane, size, cv2.INTER_LINEAR)


def _resized(plane: Samples, size: tuple[int, int], way: int) -> Samples:
    return plane if plane.shape == size[::-1] else cast("Samples", cv2.resize(plane, size, interpolation=way))


def coloured(parts: list[Samples], size: tuple[int, int], facts: Facts) -> Picture:
    """Blue, green and red [h, w, 3] of planes, the colours of which may be smaller than `size`."""
    stacked = cast("Samples", cv2.merge([_resized(part, size, cv2.INTER_LINEAR) for part in parts]))
    transfer = facts.colour.transfer
    if tone.is_hdr(transfer):
        signal = cv2.transform(stacked.astype(np.uint16, copy=False), to_bgr(facts) * _WHITE)
        return tone.shown(cast("NDArray[np.uint16]", signal), transfer)
    picture = cv2.transform(stacked, to_bgr(facts) * 255)
    return cast("Picture", picture if picture.dtype == np.uint8 else cv2.convertScaleAbs(picture))

"""A frame of ours as FFmpeg's, in the size and pixel format of what is written.

Nothing is converted where both are the same. Knows numpy, PyAV and the pixel formats.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
from av.video.frame import PictureType
from av.video.reformatter import ColorRange, VideoReformatter
from numpy.typing import NDArray

from shared.video.choosing import Target
from shared.video.facts import Facts
from shared.video.formats import layout
from shared.video.frame import Frame, Samples
from shared.video.planes import bgr

_BT709 = 1


class Pictures:
    """Not for two threads at once."""

    def __init__(self, facts: Facts, target: Target) -> None:
        self._facts, self._target = facts, target
        self._reformatter = VideoReformatter()

    def made(self, frame: Frame, *, key: bool) -> av.VideoFrame:
        """A copy: the planes of `frame` may be used again at once."""
        target, planes, pixel_format = self._target, frame.planes, frame.pixel_format
        if target.mapped:
            planes, pixel_format = self._ordinary(frame), "gbrp"
        elif layout(pixel_format).alpha and not target.alpha:
            planes, pixel_format = _on_black(planes, pixel_format, full=self._facts.colour.full_range)
        picture = _filled(planes, pixel_format, target.width, target.height)
        picture.color_range = 2 if self._facts.colour.full_range or target.mapped else 1
        if pixel_format != target.pixel_format:
            picture = self._converted(picture, pixel_format)
        picture.pts, picture.time_base = frame.pts, Fraction(*self._facts.time_base)
        picture.duration = frame.duration
        picture.pict_type = PictureType.I if key else PictureType.NONE
        return picture

    def _ordinary(self, frame: Frame) -> tuple[Samples, ...]:
        """Green, blue and red of what was HDR."""
        facts = replace(self._facts, rotation=0)
        blue, green, red = np.moveaxis(bgr(frame, (0, 0, facts.width, facts.height), facts), -1, 0)
        return green, blue, red

    def _converted(self, picture: av.VideoFrame, pixel_format: str) -> av.VideoFrame:
        kinds = layout(pixel_format).kind, layout(self._target.pixel_format).kind
        if kinds != ("gbr", "yuv"):
            return self._reformatter.reformat(picture, format=self._target.pixel_format)
        return self._reformatter.reformat(
            picture, format=self._target.pixel_format, dst_colorspace=_BT709, dst_color_range=ColorRange.MPEG
        )


def _filled(planes: tuple[Samples, ...], pixel_format: str, width: int, height: int) -> av.VideoFrame:
    """The planes, the last column and row repeated where the picture is larger."""
    picture = av.VideoFrame(width, height, pixel_format)
    shapes = layout(pixel_format).shapes(width, height)
    for plane, place, (rows, columns) in zip(planes, picture.planes, shapes, strict=True):
        samples = np.frombuffer(memoryview(place), plane.dtype).reshape(-1, place.line_size // plane.itemsize)[
            :rows, :columns
        ]
        held_rows, held_columns = plane.shape
        samples[:held_rows, :held_columns] = plane
        samples[:held_rows, held_columns:] = samples[:held_rows, held_columns - 1 : held_columns]
        samples[held_rows:] = samples[held_rows - 1 : held_rows]
    return picture


def _on_black(planes: tuple[Samples, ...], pixel_format: str, *, full: bool) -> tuple[tuple[Samples, ...], str]:
    """The same without transparency, laid on black."""
    found = layout(pixel_format)
    *colours, alpha = planes
    peak = (1 << found.depth) - 1
    dark = 0 if found.kind == "gbr" or full else 16 << found.depth - 8
    floors = [dark] * len(colours) if found.kind == "gbr" else [dark, *[1 << found.depth - 1] * (len(colours) - 1)]
    laid = tuple(
        _laid(plane, alpha[:: _step(alpha, plane, 0), :: _step(alpha, plane, 1)], floor, peak)
        for plane, floor in zip(colours, floors, strict=True)
    )
    return laid, pixel_format.replace("yuva", "yuv").replace("gbrap", "gbrp")


def _step(alpha: Samples, plane: Samples, axis: int) -> int:
    return -(-int(alpha.shape[axis]) // int(plane.shape[axis]))


def _laid(plane: Samples, alpha: Samples, floor: int, peak: int) -> Samples:
    signed: NDArray[np.int64] = (plane.astype(np.int64) - floor) * alpha
    laid = floor + (2 * signed + peak) // (2 * peak)
    return laid.astype(np.uint8) if plane.dtype == np.uint8 else laid.astype(np.uint16)

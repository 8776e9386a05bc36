"""A ring of frames in memory that two processes share: where each plane of each frame lies.

Knows numpy and the pixel formats.
"""

from __future__ import annotations

import mmap
import os

import numpy as np

from shared.video.formats import layout
from shared.video.frame import Samples

_LINE = 64
"""Planes begin at multiples of it: a line of the processor's cache."""


class Ring:
    """`slots` frames in the file `descriptor`, which `make` has made long enough."""

    def __init__(self, descriptor: int, slots: int, pixel_format: str, size: tuple[int, int]) -> None:
        self._form = layout(pixel_format)
        self._shapes = self._form.shapes(*size)
        self._places = _places(pixel_format, size)
        self._slots = slots
        self._memory = mmap.mmap(descriptor, slots * self._places[-1])

    def planes(self, number: int) -> tuple[Samples, ...]:
        """Writable views of the planes of frame `number`, counted from 0: every `slots` frames have one place."""
        start = number % self._slots * self._places[-1]
        kind: type[np.uint8] | type[np.uint16] = np.uint8 if self._form.bytes == 1 else np.uint16
        return tuple(
            np.ndarray(shape, kind, self._memory, start + place)
            for shape, place in zip(self._shapes, self._places, strict=False)
        )


def make(descriptor: int, slots: int, pixel_format: str, size: tuple[int, int]) -> None:
    """Give a file the size of a ring."""
    os.ftruncate(descriptor, slots * _places(pixel_format, size)[-1])


def frame_bytes(pixel_format: str, size: tuple[int, int]) -> int:
    return _places(pixel_format, size)[-1]


def _places(pixel_format: str, size: tuple[int, int]) -> list[int]:
    """Where each plane begins, and the bytes of them all."""
    form, places = layout(pixel_format), [0]
    for rows, columns in form.shapes(*size):
        places.append(-(-(places[-1] + rows * columns * form.bytes) // _LINE) * _LINE)
    return places

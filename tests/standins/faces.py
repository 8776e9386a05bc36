"""Made-up faces and pictures: the mean face anywhere in a flat or a noisy frame, and sources that no picture gave."""

from __future__ import annotations

import cv2
import numpy as np

from shared.vision.canonical import canonical
from shared.vision.learned import LearnedSwapper, SourceRow
from shared.vision.protocols import Floats, Image
from tests.standins.swappers import FAMILIES

BGR = (10, 20, 200)
"""One colour for a whole frame: its crop is that colour, wherever the face is."""


def face(x: float = 200, y: float = 200, size: float = 100, turned: float = 0.0) -> Floats:
    """The mean face, `size` pixels wide; `turned` in degrees about its long axis."""
    angle = np.radians(turned)
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    mean = canonical().mean @ turn.T
    return (mean * size / np.ptp(mean[:, 0]) + [x, y, 0]).astype(np.float32)


def flat(size: int = 400) -> Image:
    return np.full((size, size, 3), BGR, np.uint8)


def noise(height: int = 400, width: int = 400, seed: int = 0) -> Image:
    small = np.random.default_rng(seed).integers(0, 256, (height // 8, width // 8, 3), np.uint8)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)


def row(swapper: LearnedSwapper, seed: int = 0) -> SourceRow:
    """A source that no picture gave."""
    shape = FAMILIES[swapper.name].source
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return SourceRow(values if len(shape) == 1 else np.abs(values) % 1)

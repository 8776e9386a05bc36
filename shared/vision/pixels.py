"""Levels to what a network takes, and back: uint8 BGR pictures and float32 RGB planes.

Pure array work; knows no model.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.vision.parameters import Parameters
from shared.vision.protocols import Floats, Image


@dataclass(frozen=True)
class Pixels:
    """x = (level / 255 - mean) / std for each of red, green, blue, and the way back."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    """[3] each, red first."""
    unnorm: bool = False
    """Whether the network's output is normalised as its input is; else it is 0..1."""

    @classmethod
    def read(cls, table: Parameters) -> Pixels:
        return cls(table.channels("mean"), table.channels("std"), table.flag("unnorm"))

    def planes(self, pictures: Image) -> Floats:
        """uint8 [n, h, w, 3] BGR -> float32 [n, 3, h, w] RGB."""
        count, height, width = pictures.shape[:3]
        planes = np.empty((count, 3, height, width), np.float32)
        scale, shift = 1 / (255 * self.std), -self.mean / self.std
        # one tall picture splits into planes several times faster than a transposed copy
        for channel, levels in enumerate(reversed(cv2.split(pictures.reshape(count * height, width, 3)))):
            out = planes[:, channel]
            np.multiply(levels.reshape(count, height, width), np.float32(scale[channel]), out=out)
            if shift[channel]:
                out += np.float32(shift[channel])
        return planes

    def levels(self, planes: Floats) -> Image:
        """float32 [n, 3, h, w] RGB -> uint8 [n, h, w, 3] BGR, rounded to the nearest level, beyond 0..255 cut."""
        count, _, height, width = planes.shape
        scale = 255 * (self.std if self.unnorm else np.ones(3))
        shift = 255 * (self.mean if self.unnorm else np.zeros(3))
        pictures = np.empty((count, height, width, 3), np.uint8)
        for plane, picture in zip(planes, pictures, strict=True):
            red, green, blue = (
                cv2.addWeighted(plane[c], scale[c], plane[c], 0, shift[c], dtype=cv2.CV_8U) for c in range(3)
            )
            cv2.merge((blue, green, red), dst=picture)
        return pictures


UNIT = Pixels(np.zeros(3), np.ones(3))
"""Levels / 255 and nothing else."""

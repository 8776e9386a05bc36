"""The part of a picture that a mesh touches.

Pure geometry on pixel boxes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shared.vision.protocols import Floats, Image


class Box(NamedTuple):
    """Whole pixels, inside the picture; x1 and y1 exclusive. May be empty."""

    x0: int
    y0: int
    x1: int
    y1: int

    @classmethod
    def around(cls, mesh: Floats, shape: tuple[int, ...], pad: int = 2) -> Box:
        """The box of mesh [468, >= 2], widened by pad pixels and clipped to a picture of that shape (h, w, ...)."""
        size = np.array([shape[1], shape[0]])
        low = np.clip(np.floor(mesh[:, :2].min(0)) - pad, 0, size).astype(int)
        high = np.clip(np.ceil(mesh[:, :2].max(0)) + pad + 1, 0, size).astype(int)
        return cls(int(low[0]), int(low[1]), int(high[0]), int(high[1]))

    @property
    def width(self) -> int:
        return max(0, self.x1 - self.x0)

    @property
    def height(self) -> int:
        return max(0, self.y1 - self.y0)

    def of(self, image: Image) -> Image:
        """The view of the picture inside the box."""
        return image[self.y0 : self.y1, self.x0 : self.x1]


def crop_face(image: Image, mesh: Floats, box: Box) -> tuple[Image, Floats]:
    """The view inside the box and the mesh in its pixels."""
    return box.of(image), (mesh - np.array([box.x0, box.y0, 0], np.float32)).astype(np.float32)

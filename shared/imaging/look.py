"""What those ask of a picture who look for faces in it, cut them out and lay others over them. Knows numpy only."""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles

Image: TypeAlias = NDArray[np.uint8]
Plane: TypeAlias = NDArray[np.float32]
Box: TypeAlias = tuple[int, int, int, int]
"""x0, y0, x1, y1 in whole pixels, inside the picture; x1 and y1 exclusive."""


class Look(Protocol):
    """A picture, or a frame of a video that never becomes one: pixels are made where, and as finely as, they are asked
    for. Upright; pixels are square. `back` [2, 3] leads from pixels of the result into this (shared.imaging.warp)."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        ...

    def small(self, longest: int) -> Image:
        """The whole, averaged down to at most `longest` pixels a side; a smaller one as it is."""
        ...

    def part(self, box: Box) -> Image:
        """The pixels of a box at full resolution; not to be written to."""
        ...

    def cut(self, back: Doubles, size: tuple[int, int]) -> Image:
        """What is seen through `back`, `size` (width, height) pixels of it; averaged where it shrinks, and its edge
        repeats beyond it."""
        ...

    def glimpse(self, back: Doubles, size: tuple[int, int]) -> Image:
        """`cut` at a part of the cost, a little less sharp: for what is looked at in every frame."""
        ...

    def grey(self, back: Doubles, size: tuple[int, int]) -> Image:
        """A glimpse [height, width] of how light it is, on no scale in particular."""
        ...


class Canvas(Look, Protocol):
    """What faces are laid over."""

    def lay(self, crop: Image | Plane, mask: Plane, matrix: Doubles) -> None:
        """Lay a crop [side, side, 3], levels 0..255, over this where mask [side, side] 0..1 says.

        matrix: [2, 3], from this to the crop. What the mask leaves at 0 stays bit for bit.
        """
        ...

    def change(self, box: Box, before: Image, after: Image) -> None:
        """Bring back what was changed of a part, which was `before`."""
        ...

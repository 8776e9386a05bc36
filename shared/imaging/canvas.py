"""A picture as those see it who look for faces in it, cut them out and lay others over them.

The one kind that is there as BGR; frames of a video are another (`shared.video.canvas`). Knows OpenCV.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import cv2

from shared.imaging.geometry import Doubles
from shared.imaging.look import Box, Image, Plane
from shared.imaging.paste import paste
from shared.imaging.warp import coarse, warp


@dataclass(frozen=True)
class Still:
    """Canvas and Look."""

    image: Image
    """uint8 [h, w, 3], changed in place."""

    @property
    def size(self) -> tuple[int, int]:
        return self.image.shape[1], self.image.shape[0]

    def small(self, longest: int) -> Image:
        ratio = longest / max(self.size)
        if ratio >= 1:
            return self.image
        width, height = (max(1, round(side * ratio)) for side in self.size)
        return cast(Image, cv2.resize(self.image, (width, height), interpolation=cv2.INTER_AREA))

    def part(self, box: Box) -> Image:
        x0, y0, x1, y1 = box
        return self.image[y0:y1, x0:x1]

    def cut(self, back: Doubles, size: tuple[int, int]) -> Image:
        return warp(self.image, back, size)

    def glimpse(self, back: Doubles, size: tuple[int, int]) -> Image:
        return coarse(self.image, back, size)

    def grey(self, back: Doubles, size: tuple[int, int]) -> Image:
        return cast(Image, cv2.cvtColor(self.glimpse(back, size), cv2.COLOR_BGR2GRAY))

    def lay(self, crop: Image | Plane, mask: Plane, matrix: Doubles) -> None:
        paste(self.image, crop, mask, matrix)

    def change(self, box: Box, before: Image, after: Image) -> None:  # noqa: ARG002 - here it is what is there
        self.part(box)[:] = after

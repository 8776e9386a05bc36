"""A frame as those see it who look for faces: pixels made only where, and as finely as, they are asked for.

Knows the protocols; what a frame really is, planes of a video or a picture, is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import cv2
import numpy as np

from shared.imaging.geometry import invert, outline, region
from shared.imaging.warp import sample
from shared.vision.geometry import Region, region_from_mesh, region_from_points
from shared.vision.protocols import Floats, Image, Landmarker, Landmarks

Span = tuple[int, int, int, int]
"""x0, y0, x1, y1 in whole pixels, inside the frame; x1 and y1 exclusive."""
_ROOM = 1.0
"""Half of what is cut out around a crop, in sides of the crop: it may lie on its corner, and the next one beside it."""


class Look(Protocol):
    """One frame, upright, its pixels square. It stays valid for as long as a tracker may look back: `Pace.back`."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        ...

    def small(self, longest: int) -> Image:
        """The whole frame, averaged down to at most `longest` pixels a side; a smaller one as it is."""
        ...

    def part(self, span: Span) -> Image:
        """BGR at full resolution; not to be written to."""
        ...


@dataclass(frozen=True)
class Picture:
    """Look. A frame that is there as BGR."""

    image: Image

    @property
    def size(self) -> tuple[int, int]:
        return self.image.shape[1], self.image.shape[0]

    def small(self, longest: int) -> Image:
        ratio = longest / max(self.size)
        if ratio >= 1:
            return self.image
        width, height = (max(1, round(side * ratio)) for side in self.size)
        return np.asarray(cv2.resize(self.image, (width, height), interpolation=cv2.INTER_AREA), np.uint8)

    def part(self, span: Span) -> Image:
        x0, y0, x1, y1 = span
        return self.image[y0:y1, x0:x1]


@dataclass(frozen=True)
class Nearby:
    """Look. One part of a frame, cut out once for all who look at the face in it."""

    look: Look
    span: Span
    pixels: Image

    @classmethod
    def around(cls, look: Look, mesh: Floats) -> Nearby:
        """A mesh [468, >= 2] with what a crop around it can reach."""
        around = region_from_mesh(mesh)
        width, height = look.size
        span = region([(around.x, around.y)], (height, width), _ROOM * around.side)
        empty = min(span[2] - span[0], span[3] - span[1]) < 1
        return cls(look, span, np.zeros((0, 0, 3), np.uint8) if empty else look.part(span))

    @property
    def size(self) -> tuple[int, int]:
        return self.look.size

    def small(self, longest: int) -> Image:
        return self.look.small(longest)

    def part(self, span: Span) -> Image:
        x0, y0, x1, y1 = self.span
        if x0 <= span[0] and y0 <= span[1] and span[2] <= x1 and span[3] <= y1:
            return self.pixels[span[1] - y0 : span[3] - y0, span[0] - x0 : span[2] - x0]
        return self.look.part(span)


def crop(look: Look, around: Region, side: int, *, grey: bool = False) -> Image | None:
    """A turned square of the frame as [side, side, 3], or [side, side]; beyond the frame its edge repeats.

    Averaged where it shrinks: over whole pixels first, since every face is looked at so in every frame. None where it
    shows nothing of the frame.
    """
    back = invert(around.matrix(side))
    width, height = look.size
    span = region(outline(side, side, back, 1), (height, width), 2)
    if min(span[2] - span[0], span[3] - span[1]) < 1:
        return None
    part, origin = look.part(span), np.array(span[:2], np.float64)
    if grey:
        part = np.asarray(cv2.cvtColor(part, cv2.COLOR_BGR2GRAY), np.uint8)
    n = max(1, min(int(around.side / side), *part.shape[:2]))
    if n > 1:
        rows, columns = part.shape[0] // n, part.shape[1] // n
        whole = part[: rows * n, : columns * n]
        part = np.asarray(cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA), np.uint8)
        origin += (n - 1) / 2
    return sample(part, np.column_stack([back[:, :2], back[:, 2] - origin]) / n, (side, side))


def locate(look: Look, landmarker: Landmarker, points: Sequence[Floats]) -> list[Landmarks | None]:
    """`Landmarker.locate` on the parts of the frame around five-point sets [5, 2]; None for one outside of it."""
    return [_measured(look, five, landmarker, follow=False) for five in points]


def follow(look: Look, landmarker: Landmarker, mesh: Floats) -> Landmarks | None:
    """`Landmarker.follow` for one mesh [468, 3], as `locate`."""
    return _measured(look, mesh, landmarker, follow=True)


def _measured(look: Look, seed: Floats, landmarker: Landmarker, *, follow: bool) -> Landmarks | None:
    around = region_from_mesh(seed) if follow else region_from_points(seed)
    width, height = look.size
    span = region([(around.x, around.y)], (height, width), _ROOM * around.side)
    if min(span[2] - span[0], span[3] - span[1]) < 2:
        return None
    corner = np.array([span[0], span[1], 0][: seed.shape[1]], np.float32)
    part, local = look.part(span), (seed - corner).astype(np.float32)
    (found,) = landmarker.follow(part, [local]) if follow else landmarker.locate(part, [local])
    return Landmarks((found.mesh + np.array([span[0], span[1], 0], np.float32)).astype(np.float32), found.score)

"""The part of a frame around one face, and what is cut out of it upright.

Knows the protocols; what a frame really is, planes of a video or a picture, is the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shared.imaging.geometry import Doubles, invert, outline, region
from shared.imaging.look import Box, Look
from shared.vision.geometry import Region, region_from_mesh, region_from_points
from shared.vision.protocols import Floats, Image, Landmarker, Landmarks

_ROOM = 1.0
"""Half of what is cut out around a crop, in sides of the crop: it may lie on its corner, and the next one beside it."""


@dataclass(frozen=True)
class Nearby:
    """The pixels around a face, made once for all who ask for them, and only then."""

    look: Look
    mesh: Floats
    """[468, >= 2]"""

    @cached_property
    def span(self) -> Box:
        """The mesh with what a crop around it can reach."""
        return _span(self.look, region_from_mesh(self.mesh))

    @property
    def hidden(self) -> bool:
        """Whether too little of it lies in the frame for a model to look at."""
        return _hidden(self.span)

    @cached_property
    def pixels(self) -> Image:
        """[h, w, 3]; without a pixel for a face outside of the frame."""
        x0, y0, x1, y1 = self.span
        return self.look.part(self.span) if x0 < x1 and y0 < y1 else np.zeros((0, 0, 3), np.uint8)


def upright(look: Look, around: Region, side: int) -> Doubles | None:
    """[2, 3] from pixels of a turned square's crop into the frame; None where it shows nothing of the frame."""
    back = invert(around.matrix(side))
    x0, y0, x1, y1 = region(outline(side, side, back, 1), look.size[::-1], 2)
    return None if x0 >= x1 or y0 >= y1 else back


def locate(look: Look, landmarker: Landmarker, points: Sequence[Floats]) -> list[Landmarks | None]:
    """`Landmarker.locate` on the parts of the frame around five-point sets [5, 2]; None for one outside of it."""
    return [_located(look, five, landmarker) for five in points]


def _located(look: Look, five: Floats, landmarker: Landmarker) -> Landmarks | None:
    span = _span(look, region_from_points(five))
    if _hidden(span):
        return None
    corner = np.array([*span[:2], 0], np.float32)
    (found,) = landmarker.locate(look.part(span), [(five - corner[:2]).astype(np.float32)])
    return Landmarks((found.mesh + corner).astype(np.float32), found.score)


def follow(look: Look, landmarker: Landmarker, mesh: Floats) -> Landmarks | None:
    """`Landmarker.follow` for one mesh [468, 3]; None for one outside of the frame."""
    return None if _hidden(_span(look, region_from_mesh(mesh))) else landmarker.follow(look, [mesh])[0]


def _span(look: Look, around: Region) -> Box:
    return region([(around.x, around.y)], look.size[::-1], _ROOM * around.side)


def _hidden(span: Box) -> bool:
    return min(span[2] - span[0], span[3] - span[1]) < 2

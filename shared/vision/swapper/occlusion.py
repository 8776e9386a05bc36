"""Hair, hands, glasses: what lies over the skin.

An occluder is what a smooth light on skin cannot explain, that has some size and comes in from the rim or is large.
What covers the mouth is known by the lips that are missing, and glasses are looked for elsewhere (`glasses`): in both
places the face's own features are dark and coloured too.
Lengths are in units of the texture's side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import cv2
import numpy as np

from shared.vision.protocols import Floats
from shared.vision.swapper.filters import Bools, blur, blur_mask, disc, grow
from shared.vision.swapper.uv import UVGrid

_SOURCE_MARGIN = 0.02
_FRINGE_MARGIN = 0.04
_FRINGE_FEATHER = 0.03
"""A fringe shades the skin below it: cut closer or harder, the shade reads as a second pair of brows. Elsewhere the
wide margin would only take likeness away (0.007 of dlib's distance)."""

_LIPS_OVER_EYES = 0.25
"""Spread of log luma on the lips over that on eyes and brows. Measured: covered up to 0.15, seen from 0.37
(half in shadow)."""


@dataclass(frozen=True)
class Occlusion:
    """All [size, size]."""

    clear: Floats
    """1 where the face is seen, soft edge."""
    clear_wide: Floats
    """The same with a wide margin, for a source whose skin is to be taken."""
    suspicion: Floats
    """How little light explains a texel; 1 is an occluder."""
    near: Floats
    """1 on occluders and around them: not to be measured."""
    glasses: bool
    mouth_covered: bool


class Seen(NamedTuple):
    """A face in the texture, and what is known of it."""

    texture: Floats
    """[size, size, 3]: log luma and chroma."""
    surface: Floats
    """[size, size, 3]: as the light fit explains it."""
    scales: tuple[float, float]
    """Robust deviations of luma and chroma about the fit."""
    visible: Floats
    """[size, size]"""
    glasses: bool


def find_occluders(face: Seen, grid: UVGrid) -> Occlusion:
    texture, visible = face.texture, face.visible
    size = grid.size
    rest = texture - face.surface
    suspicion = _suspicion(texture[..., 0], rest, face.scales, grid)
    found = _of_size(suspicion, grid)
    wide = grow(found, 0.1 * size)
    mouth, lenses = _lacks_lips(texture[..., 0], visible, grid), _sunglasses(rest[..., 0], visible, grid)
    known = (grid.eye_band & face.glasses) | (grid.lower_face & mouth)
    covered = (grow(found, 0.055 * size) & ~grid.core) | lenses | known
    return Occlusion(
        clear=1 - blur_mask(covered, 0.017 * size),
        clear_wide=_clear_source(wide, known, grid),
        suspicion=cast(Floats, cv2.dilate(suspicion, disc(0.04 * size))),
        near=(wide | known).astype(np.float32),
        glasses=face.glasses,
        mouth_covered=mouth,
    )


def _clear_source(wide: Bools, known: Bools, grid: UVGrid) -> Floats:
    """1 where a source's skin may be taken."""
    size = grid.size
    plain = blur_mask(grow(wide, _SOURCE_MARGIN * size) & ~grid.core | known, _SOURCE_MARGIN * size)
    fringe = blur_mask(grow(wide, _FRINGE_MARGIN * size) & ~grid.core | known, _FRINGE_FEATHER * size)
    return 1 - plain - grid.forehead * (fringe - plain)


def _suspicion(luma: Floats, rest: Floats, scales: tuple[float, float], grid: UVGrid) -> Floats:
    """1 where a texel is darker by 3 deviations, lighter by 3.5, of another colour by 3, or near the rim as rough as
    strands of hair."""
    size = grid.size
    luma_scale, chroma_scale = scales
    dark = -rest[..., 0] / max(luma_scale * 3, 0.38)
    light = rest[..., 0] / max(luma_scale * 3.5, 0.45)
    other = np.hypot(rest[..., 1], rest[..., 2]) / max(chroma_scale * 3, 0.22)
    luma = np.ascontiguousarray(luma)
    fine = luma - blur(luma, 0.02 * size)
    rough = np.sqrt(blur(fine * fine, 0.02 * size)) / np.float32(0.09) * (grid.rim < 0.16)
    worst = np.maximum(np.maximum(dark, light), np.maximum(other, rough)).astype(np.float32)
    return blur(worst, 0.008 * size) * (~grid.core & grid.inside)


def _of_size(suspicion: Floats, grid: UVGrid) -> Bools:
    """Connected weak areas that hold a strong spot of some size and touch the rim or are large."""
    strong = cv2.morphologyEx((suspicion > 1).astype(np.uint8), cv2.MORPH_OPEN, np.ones((2, 2), np.uint8)) > 0
    count, labels, stats, _ = cv2.connectedComponentsWithStats((suspicion > 0.55).astype(np.uint8))
    hit, rim = np.zeros(count, bool), np.zeros(count, bool)
    hit[labels[strong]] = True
    rim[labels[grid.rim < 0.07]] = True
    hit &= rim | (stats[:, cv2.CC_STAT_AREA] > 0.03 * grid.size**2)
    hit[0] = False
    return cast(Bools, hit[labels])


def _sunglasses(luma_rest: Floats, visible: Floats, grid: UVGrid) -> Bools:
    """An eye with its brow that is dark all over."""
    covered = np.zeros_like(grid.inside)
    for lens in grid.lenses:
        seen = luma_rest[lens & (visible > 0.5)]
        if seen.size > 12 and np.percentile(seen, 75) < -0.55:
            covered |= grow(lens, 0.07 * grid.size)
    return covered


def _lacks_lips(luma: Floats, visible: Floats, grid: UVGrid) -> bool:
    """Between chin and nose nothing is drawn, while the eyes are: lips are hidden."""
    seen = visible > 0.5
    lips, eyes = luma[grid.lip_shape & seen], luma[grid.drawn & ~grid.lip_shape & seen]
    if min(lips.size, eyes.size) < 12:
        return False
    return float(lips.std()) < _LIPS_OVER_EYES * float(eyes.std())

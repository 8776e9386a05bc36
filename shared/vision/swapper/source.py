"""A source face as the swapper keeps it: features without light, complete on both sides.

Computed once per source picture (20-26 CPU ms), cacheable. Knows no target.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from shared.vision.protocols import Floats, Image
from shared.vision.swapper.analysis import Analysis, SkinStatistics, analyse
from shared.vision.swapper.colour import split
from shared.vision.swapper.filters import blur_mask, enlarge, reduce
from shared.vision.swapper.fitness import Fitness, fitness
from shared.vision.swapper.mouth import find_teeth
from shared.vision.swapper.region import Box, crop_face
from shared.vision.swapper.sides import either_side, own_side
from shared.vision.swapper.uv import UVGrid, uv_grid
from shared.vision.swapper.visibility import visibility

TEXTURE_SIZES = (128, 256, 512)
"""A face gets the first that is larger than it."""
_SHADING = np.float32(0.32)
_SHADING_CHROMA = np.float32(0.55)
"""Shading that is no feature: its log luma is limited, its chroma damped."""
_HAIR_SHADE = np.float32(-0.05)


@dataclass(frozen=True)
class MeshIdentity:
    """What a source face gives to any target. Arrays are in the texture and never changed."""

    detail: Floats
    """[size, size, 3]: log luma and chroma minus the lighting."""
    clear: Floats
    """[size, size]: 1 where the source really shows its face, on this side or the other."""
    skin: SkinStatistics
    teeth: Floats
    """[size, size]: 1 where an open mouth shows teeth."""
    mesh: Floats
    """[468, 3] in the pixels of some crop: only its shape counts."""
    fitness: Fitness

    @property
    def size(self) -> int:
        return len(self.detail)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of this source will be seen on every target; no refusal, the swap works."""
        return self.fitness.warnings


def prepare_source(image: Image, mesh: Floats) -> MeshIdentity:
    """`image` uint8 BGR, `mesh` [468, 3] in its pixels; the face may be cut by the picture's edge."""
    crop, mesh = crop_face(image, mesh, Box.around(mesh, image.shape, pad=8))
    side = float(np.ptp(mesh[:, :2], axis=0).max())
    size = next((s for s in TEXTURE_SIZES if s >= side * 1.15), TEXTURE_SIZES[-1])
    analysis = analyse(crop, mesh)
    fit = fitness(analysis, mesh)
    ratio = size / (side * 1.1)
    if ratio < 1 / 1.6:
        crop, mesh = reduce(crop, ratio), mesh * np.float32(ratio)
    grid, seen = uv_grid(size), visibility(mesh, size)
    detail = _detail(crop, mesh, analysis, grid)
    own = own_side(seen, analysis, grid)
    both = detail * own[..., None] + detail[:, ::-1] * (1 - own[..., None])
    clear = enlarge(analysis.occlusion.clear_wide, size, size)
    clear = (clear * own + clear[:, ::-1] * (1 - own)) * either_side(seen)
    return MeshIdentity(both, clear, analysis.skin, find_teeth(both, mesh, grid), mesh, fit)


def _detail(image: Image, mesh: Floats, analysis: Analysis, grid: UVGrid) -> Floats:
    size = grid.size
    texture = split(grid.unwrap(image, mesh, cv2.INTER_CUBIC).astype(np.float32))
    detail = texture - enlarge(analysis.light, size, size)
    plain = 1 - grid.feature
    luma = detail[..., 0].copy()
    held = _SHADING * np.tanh(luma / _SHADING)
    detail[..., 0] += plain * (held - luma)
    # the colour that comes with shade is the light's, not the face's: the target's own is put back by relight
    detail[..., 1:] -= ((1 - grid.tinted) * luma)[..., None] * np.array(analysis.skin.warmth, np.float32)
    detail[..., 1:] *= (1 - plain * (1 - _SHADING_CHROMA))[..., None]
    return _without_hair_shade(detail, analysis, grid)


def _without_hair_shade(detail: Floats, analysis: Analysis, grid: UVGrid) -> Floats:
    """Lift what is dark beside an occluder and no feature: the shade of a fringe reads as a second pair of brows."""
    size = grid.size
    near = (enlarge(analysis.occlusion.near, size, size) > 0.5) & ~grid.drawn
    weight = blur_mask(near, 0.006 * size) * grid.forehead
    detail[..., 0] += weight * (np.maximum(detail[..., 0], _HAIR_SHADE) - detail[..., 0])
    return detail

"""A source face as the swapper keeps it: features without light, complete on both sides.

Computed once per source picture (20-26 CPU ms), cacheable. Knows no target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import cv2
import numpy as np

from shared.vision.protocols import Floats, Image
from shared.vision.swapper.analysis import Analysis, SkinStatistics, analyse
from shared.vision.swapper.colour import split
from shared.vision.swapper.filters import blur, blur_mask, disc, enlarge, reduce, smoothstep, smoothstep_of
from shared.vision.swapper.region import Box, crop_face
from shared.vision.swapper.uv import UVGrid, uv_grid
from shared.vision.swapper.visibility import visibility

TEXTURE_SIZES = (128, 256, 512)
"""A face gets the first that is larger than it."""
_SHADING = np.float32(0.32)
_SHADING_CHROMA = np.float32(0.45)
"""Shading that is no feature: its log luma is limited, its chroma damped."""
_HAIR_SHADE = np.float32(-0.05)
HARD_LIGHT = 0.2
"""Contrast of the skin above which shadows read as dirt or beard (engine.md section 8)."""
_OUTER_EYES, _LIPS_GAP, _LIPS_CORNERS = (33, 263), (13, 14), (61, 291)
_OPEN, _WIDE = 0.1, 0.72
"""Of the distance of the outer eye corners. Measured: smiles up to 0.09 and 0.68, laughs from 0.11 and 0.73."""


@dataclass(frozen=True)
class MeshIdentity:
    """What a source face gives to any target. Arrays are in the texture and never changed."""

    detail: Floats
    """[size, size, 3]: log luma and chroma minus the lighting."""
    clear: Floats
    """[size, size]: 1 where the source really shows its face, on this side or the other."""
    skin: SkinStatistics
    mesh: Floats
    """[468, 3] in the pixels of some crop: only its shape counts."""
    glasses: bool
    mouth_covered: bool

    @property
    def size(self) -> int:
        return len(self.detail)

    @property
    def hard_light(self) -> bool:
        return self.skin.contrast > HARD_LIGHT

    @property
    def laughing(self) -> bool:
        """The mouth is wide or open for its face, and so the cheeks are folded."""
        outer = _length(self.mesh, *_OUTER_EYES)
        return _length(self.mesh, *_LIPS_GAP) > _OPEN * outer or _length(self.mesh, *_LIPS_CORNERS) > _WIDE * outer

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of this source will be seen on every target; no refusal, the swap works."""
        found = {
            "source_hard_light": self.hard_light,
            "source_glasses": self.glasses,
            "source_mouth_covered": self.mouth_covered,
            "source_laughing": self.laughing,
        }
        return tuple(name for name, is_so in found.items() if is_so)


def prepare_source(image: Image, mesh: Floats) -> MeshIdentity:
    """`image` uint8 BGR, `mesh` [468, 3] in its pixels; the face may be cut by the picture's edge."""
    crop, mesh = crop_face(image, mesh, Box.around(mesh, image.shape, pad=8))
    side = float(np.ptp(mesh[:, :2], axis=0).max())
    size = next((s for s in TEXTURE_SIZES if s >= side * 1.15), TEXTURE_SIZES[-1])
    analysis = analyse(crop, mesh)
    ratio = size / (side * 1.1)
    if ratio < 1 / 1.6:
        crop, mesh = reduce(crop, ratio), mesh * np.float32(ratio)
    grid, seen = uv_grid(size), visibility(mesh, size)
    detail = _detail(crop, mesh, analysis, grid)
    own = _own_side(seen, analysis, grid)
    both = detail * own[..., None] + detail[:, ::-1] * (1 - own[..., None])
    clear = enlarge(analysis.occlusion.clear_wide, size, size)
    clear = clear * own + clear[:, ::-1] * (1 - own)
    occlusion = analysis.occlusion
    return MeshIdentity(
        both, clear * _either_side(seen), analysis.skin, mesh, occlusion.glasses, occlusion.mouth_covered
    )


def _length(mesh: Floats, a: int, b: int) -> float:
    return float(np.linalg.norm(mesh[a] - mesh[b]))


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


def _own_side(seen: Floats, analysis: Analysis, grid: UVGrid) -> Floats:
    """[size, size]: 1 where the texel itself is used, 0 where its mirror image stands in.

    The mirror image takes over early when the pose is asymmetric, and where hair lies on one side only.
    """
    size, mirrored = grid.size, seen[:, ::-1]
    inner = grid.rim > 0.1
    lean = float((seen * inner * np.linspace(-1, 1, size, dtype=np.float32)).sum() / inner.sum())
    turned = smoothstep_of(abs(lean), 0.04, 0.12)
    better = smoothstep(seen - mirrored, -0.40 + 0.26 * turned, -0.12 + 0.10 * turned)
    own = np.where(seen >= mirrored, np.float32(1), better * smoothstep(seen, 0.10, 0.40))
    own = blur(own, 0.012 * size)
    clear = enlarge(analysis.occlusion.clear_wide, size, size)
    other = clear[:, ::-1]
    clean = smoothstep(enlarge(analysis.occlusion.suspicion, size, size)[:, ::-1], 0.45, 0.25)
    swap = (clear < 0.5) & (other > clear + 0.2) & (mirrored > 0.2)
    return blur(np.where(swap, np.minimum(own, 1 - clean * (1 - clear)), own), 0.006 * size)


def _either_side(seen: Floats) -> Floats:
    """1 where the camera saw the texel or its mirror image."""
    size = len(seen)
    best = cv2.morphologyEx(np.maximum(seen, seen[:, ::-1]), cv2.MORPH_CLOSE, disc(max(3, int(0.09 * size))))
    return smoothstep(cast(Floats, best), 0.2, 0.5)

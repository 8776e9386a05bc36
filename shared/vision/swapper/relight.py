"""The source's features in the target's light, as a texture with opacity.

Knows the texture square; no picture and no mesh.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from shared.vision.protocols import Floats, SwapOptions
from shared.vision.swapper.analysis import SHARPNESS_BLURS, Analysis, SkinStatistics
from shared.vision.swapper.colour import join
from shared.vision.swapper.filters import Bytes, blur, enlarge, smoothstep, smoothstep_of
from shared.vision.swapper.mouth import wider_open, without_moustache
from shared.vision.swapper.sides import HARD_LIGHT
from shared.vision.swapper.source import MeshIdentity
from shared.vision.swapper.uv import UVGrid, rim_feather, uv_grid

_WHITE = np.float32(np.log(250.0))
"""Highlights end softly before a channel clips."""


class Paint(NamedTuple):
    """In the texture."""

    colour: Bytes
    """[size, size, 3] BGR."""
    opacity: Floats
    """[size, size], 0..1."""
    plain: Floats
    """[size, size]: 1 on skin without features, where the frame's own grain belongs."""


class Surface(NamedTuple):
    """The target face."""

    analysis: Analysis
    mesh: Floats
    """[468, 3] in the pixels of some crop."""
    facing: Floats
    """[468]"""


def relight(identity: MeshIdentity, target: Surface, options: SwapOptions) -> Paint:
    grid = uv_grid(identity.size)
    opacity = _opacity(identity, target.analysis, grid.spread(target.facing), grid, options)
    laugh = wider_open(identity.mesh, target.mesh)
    if laugh:
        opacity = opacity * (1 - np.float32(laugh) * identity.teeth)
        identity = replace(identity, detail=without_moustache(identity.detail, laugh, grid))
    return Paint(_colour(identity, target.analysis, grid), opacity, 1 - grid.feature)


def _colour(identity: MeshIdentity, target: Analysis, grid: UVGrid) -> Bytes:
    size = grid.size
    detail = _as_sharp(identity, target.skin)
    light = enlarge(target.light, size, size)
    base, blue, red = light[..., 0], light[..., 1], light[..., 2]
    luma = detail[..., 0] * _contrast(identity.skin, target.skin)
    headroom = np.maximum(_WHITE - base - np.log1p(np.maximum(np.maximum(blue, red), 0)), 0.08)
    luma = np.where(luma > 0, headroom * np.tanh(luma / headroom), luma)
    chroma = _chroma(identity.skin, target.skin, grid)
    shade = luma * (1 - grid.tinted)
    blue = blue + detail[..., 1] * chroma + shade * np.float32(target.skin.warmth[0])
    red = red + detail[..., 2] * chroma + shade * np.float32(target.skin.warmth[1])
    texture = join(base + luma, blue, red)
    return cast(Bytes, np.clip(texture + 0.5, 0, 255).astype(np.uint8))


def _as_sharp(identity: MeshIdentity, target: SkinStatistics) -> Floats:
    """A blurred frame gets a blurred face."""
    wanted, have = target.sharpness[0] * 1.1, identity.skin.sharpness
    if wanted >= have[0] * 0.8:
        return identity.detail
    # sharpness falls with blur: both negated, so that interp's abscissa rises
    sigma = float(np.interp(-wanted, [-h for h in have], SHARPNESS_BLURS))
    return blur(identity.detail, max(sigma * identity.size, 1e-3))


def _contrast(source: SkinStatistics, target: SkinStatistics) -> np.float32:
    """Halfway to the target's. Hard shadows may be lowered further than a face that needs its contrast to be known."""
    least = 0.84 - 0.19 * smoothstep_of(source.contrast, 0.15, HARD_LIGHT)
    return np.float32(np.clip((target.contrast / max(source.contrast, 1e-3)) ** 0.5, least, 1.3))


def _chroma(source: SkinStatistics, target: SkinStatistics, grid: UVGrid) -> Floats:
    """Factor of the detail's chroma: as colourful as the target's skin, lips a little more, none on a grey target."""
    ratio = float(np.clip(1.3 * target.chroma / max(source.chroma, 1e-3), 0.4, 1.0)) if source.chroma > 1e-3 else 1.0
    factor = ratio + max(0.0, 0.85 - ratio) * grid.lips
    return (factor * smoothstep_of(target.saturation, 0.03, 0.15)).astype(np.float32)


def _opacity(identity: MeshIdentity, target: Analysis, facing: Floats, grid: UVGrid, options: SwapOptions) -> Floats:
    """Feathered at the rim and the silhouette; the target's occluders, and the eyes and teeth, stay the target's."""
    size = grid.size
    opacity = rim_feather(grid) * smoothstep(facing, 0.12, 0.48) * identity.clear
    opacity = opacity * enlarge(target.occlusion.clear, size, size) * (1 - grid.keep_mouth)
    return opacity if options.eyes == "source" else opacity * (1 - grid.keep_eyes)

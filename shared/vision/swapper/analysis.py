"""What light falls on a face, where skin is hidden, and what its skin is like.

Works on a 64 x 64 texture, which is enough for everything smooth. All lengths are in units of the texture's side;
numbers without another source were tuned on the pictures of engine.md section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from shared.vision.protocols import Floats, Image
from shared.vision.swapper.colour import split
from shared.vision.swapper.filters import Bools, blur, reduce, smoothstep
from shared.vision.swapper.glasses import has_glasses
from shared.vision.swapper.occlusion import Occlusion, Seen, find_occluders
from shared.vision.swapper.uv import UVGrid, uv_grid
from shared.vision.swapper.visibility import visibility

SIZE = 64
_PICTURE = 1.6 * SIZE
"""Longest side of the region that is analysed: finer would alias and fool the sharpness measure."""
_SIGMA = 0.06
_PRIOR = np.float32(0.06)
"""Blur of the lighting, and the weight of the smooth fit in it where skin is missing."""
_WARMTH_RIDGE = 0.003
_WARMEST = 0.9
"""Skin in warm light was measured at 0.6-0.9; the ridge keeps evenly lit faces from wild slopes."""
SHARPNESS_BLURS = tuple(b / 128 for b in (0.0, 0.5, 0.8, 1.2, 1.7, 2.4, 3.4))


class SkinStatistics(NamedTuple):
    """What is to be matched between two faces."""

    sharpness: tuple[float, ...]
    """Fine over middle band of the detail: as it is, and (sources) blurred by SHARPNESS_BLURS."""
    contrast: float
    """RMS of log luma detail on skin. Above 0.2 the light is hard."""
    chroma: float
    """RMS of chroma detail on skin."""
    saturation: float
    """Mean absolute chroma of the lighting's skin; about 0 on a grey picture."""
    warmth: tuple[float, float]
    """How blue and red chroma change per unit of log luma across the skin: shade is more coloured than highlight."""


@dataclass(frozen=True)
class Analysis:
    """All arrays [64, 64] in the texture."""

    light: Floats
    """[64, 64, 3]: smooth log luma and chroma, as it falls on plain skin."""
    occlusion: Occlusion
    skin: SkinStatistics
    luma: Floats
    """[64, 64]: log luma as seen."""
    plain: Floats
    """[64, 64]: 1 on visible skin, 0 on features and near occluders."""


def analyse(image: Image, mesh: Floats, facing: Floats | None = None) -> Analysis:
    """One face in a crop of its picture.

    `facing` [468]: given for a target, where the cheap test for visibility does; a source gets the full one and
    blurred sharpness values, so that it can be matched to any target.
    """
    glasses = has_glasses(image, mesh)
    ratio = _PICTURE / max(image.shape[:2])
    if ratio <= 0.8:
        image, mesh = reduce(image, ratio), mesh * np.float32(ratio)
    grid = uv_grid(SIZE)
    seen = visibility(mesh, SIZE) if facing is None else grid.spread(facing)
    visible = smoothstep(seen, 0.15, 0.45) * grid.inside
    texture = split(grid.unwrap(image, mesh).astype(np.float32))
    fit = fit_light(texture, visible * ~grid.features, grid)
    scales = (fit.luma_scale, fit.chroma_scale)
    occlusion = find_occluders(Seen(texture, fit.surface, scales, visible, glasses), grid)
    skin = visible * ~grid.features * (1 - occlusion.near)
    light = _smooth_light(texture, fit, skin)
    statistics = _statistics(texture, light, skin, visible, SHARPNESS_BLURS if facing is None else (0.0,))
    return Analysis(light, occlusion, statistics, np.ascontiguousarray(texture[..., 0]), skin)


class LightFit(NamedTuple):
    """A robust quadratic surface over log luma and chroma."""

    surface: Floats
    """[64, 64, 3]"""
    luma_scale: float
    chroma_scale: float
    """Robust standard deviations of what it does not explain."""
    sure: Bools
    """[64, 64]: visible skin."""


def fit_light(texture: Floats, skin: Floats, grid: UVGrid) -> LightFit:
    """Iteratively reweighted least squares (Geman-McClure weights), the middle of the face trusted most."""
    basis, data = grid.basis, texture.reshape(-1, 3)
    middle = np.hypot(basis[:, 1] / 0.55, (basis[:, 2] + 0.05) / 0.5) < 1
    trust = skin.ravel() * np.where(middle, np.float32(1), np.float32(0.15))
    used = trust > 0.02
    b, d, w = basis[used], data[used], trust[used]
    total, weights = float(w.sum()) + 1e-9, w
    ridge = np.diag([1e-3] + [0.02] * 5)
    solution = np.zeros((6, 3), np.float32)
    luma_scale, chroma_scale = 0.10, 0.05
    for _ in range(4):
        weighted = b * weights[:, None]
        normal = weighted.T @ b + ridge * max(float(weights.sum()), 1.0)
        solution = np.linalg.solve(normal, weighted.T @ d).astype(np.float32)
        rest = d - b @ solution
        luma, chroma = rest[:, 0] ** 2, rest[:, 1] ** 2 + rest[:, 2] ** 2
        luma_scale = max(0.10, 1.48 * float(np.sqrt((np.minimum(luma, 0.25) * w).sum() / total)))
        chroma_scale = max(0.05, 1.2 * float(np.sqrt((np.minimum(chroma, 0.06) * w).sum() / total)))
        weights = w / (1 + luma / luma_scale**2 + chroma / chroma_scale**2) ** 2
    surface = (basis @ solution).astype(np.float32).reshape(texture.shape)
    return LightFit(surface, luma_scale, chroma_scale, skin > 0.5)


def _smooth_light(texture: Floats, fit: LightFit, skin: Floats) -> Floats:
    """The fit plus the blurred rest of visible skin; where there is no skin, the fit alone."""
    surface = fit.surface.copy()
    if fit.sure.sum() > 20:
        low, high = np.percentile(texture[..., 0][fit.sure], [2, 98])
        surface[..., 0] = np.clip(surface[..., 0], low, high)
    weight = blur(skin, _SIGMA * SIZE) + _PRIOR
    return surface + blur((texture - surface) * skin[..., None], _SIGMA * SIZE) / weight[..., None]


def _statistics(
    texture: Floats, light: Floats, skin: Floats, visible: Floats, blurs: tuple[float, ...]
) -> SkinStatistics:
    grid = uv_grid(SIZE)
    detail = texture - light
    weight = skin * (grid.rim > 0.04)
    total = float(weight.sum()) + 1e-6
    inner = visible * (grid.rim > 0.12)
    luma = np.ascontiguousarray(detail[..., 0])

    def mean(x: Floats) -> float:
        return float((x * weight).sum() / total)

    return SkinStatistics(
        sharpness=tuple(_band_ratio(luma if b == 0 else blur(luma, b * SIZE), inner) for b in blurs),
        contrast=mean(luma**2) ** 0.5,
        chroma=mean((detail[..., 1:] ** 2).sum(2)) ** 0.5,
        saturation=mean(np.abs(light[..., 1:]).sum(2)),
        warmth=_warmth(texture, weight),
    )


def _warmth(texture: Floats, weight: Floats) -> tuple[float, float]:
    """Weighted regression of blue and of red chroma on log luma, kept to the sign skin has."""
    total = weight.sum() + np.float32(1e-6)
    centred = texture - (texture * weight[..., None]).sum((0, 1)) / total
    luma = centred[..., 0] * weight
    spread = float((luma * centred[..., 0]).sum() / total) + _WARMTH_RIDGE
    blue, red = (float((luma * centred[..., k]).sum() / total) / spread for k in (1, 2))
    return min(max(blue, 0.0), _WARMEST), max(min(red, 0.0), -_WARMEST)


def _band_ratio(luma: Floats, weight: Floats) -> float:
    """Fine over middle band: blur lowers it, contrast does not change it."""
    fine = blur(luma, 0.0094 * SIZE)
    middle = fine - blur(fine, 0.03 * SIZE)
    return _rms(luma - fine, weight) / (_rms(middle, weight) + 1e-3)


def _rms(x: Floats, weight: Floats) -> float:
    return float(np.sqrt(cast(np.float32, (x * x * weight).sum() / (weight.sum() + np.float32(1e-6)))))

"""What is wrong with a source, as far as every target will show it: measured on the small texture alone.

The words are stable: they stand in results and refusals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shared.vision.protocols import Floats, Image
from shared.vision.swapper.analysis import SIZE, Analysis, analyse
from shared.vision.swapper.mouth import laughs
from shared.vision.swapper.region import Box, crop_face
from shared.vision.swapper.sides import HARD_LIGHT, own_side
from shared.vision.swapper.uv import uv_grid
from shared.vision.swapper.visibility import visibility

_SHADOWED = 0.225
"""In hard light: the edges of what is left show as lines. Measured on 13 faces under drawn bars 0.17-0.34, on a studio
portrait and on a speaker under stage lights, which come out usable, 0.20 and 0.21."""
_LENT = 0.3
"""Below, the result is the target again. Measured: bare faces from 0.91, with glasses or a covered mouth 0.43-0.6, with
both 0.04."""


@dataclass(frozen=True)
class Fitness:
    """Of one source face."""

    contrast: float
    """RMS of log luma detail on its skin."""
    shadow: float
    """The same where the better lit side stands for both: what is left of shadows."""
    lent: float
    """Part of eyes, brows, nose and lips that the source shows, 0..1."""
    glasses: bool
    mouth_covered: bool
    laughing: bool

    @property
    def warnings(self) -> tuple[str, ...]:
        found = {
            "source_shadowed": self.contrast > HARD_LIGHT and self.shadow > _SHADOWED,
            "source_hidden": self.lent < _LENT,
            "source_hard_light": self.contrast > HARD_LIGHT,
            "source_glasses": self.glasses,
            "source_mouth_covered": self.mouth_covered,
            "source_laughing": self.laughing,
        }
        return tuple(name for name, is_so in found.items() if is_so)


def examine(image: Image, mesh: Floats) -> Fitness:
    """`image` uint8 BGR, `mesh` [468, 3] in its pixels; about 10 CPU ms."""
    crop, mesh = crop_face(image, mesh, Box.around(mesh, image.shape, pad=8))
    return fitness(analyse(crop, mesh), mesh)


def fitness(analysis: Analysis, mesh: Floats) -> Fitness:
    grid, seen = uv_grid(SIZE), visibility(mesh, SIZE)
    own = own_side(seen, analysis, grid)

    def of_both(x: Floats) -> Floats:
        return x * own + x[:, ::-1] * (1 - own)

    detail = analysis.luma - analysis.light[..., 0]
    weight = of_both(analysis.plain) * (grid.rim > 0.04) * ~grid.mouth_wide
    shadow = float(np.sqrt((of_both(detail) ** 2 * weight).sum() / (weight.sum() + 1e-6)))
    clear = of_both(analysis.occlusion.clear_wide)[grid.features]
    occlusion = analysis.occlusion
    return Fitness(
        analysis.skin.contrast, shadow, float(clear.mean()), occlusion.glasses, occlusion.mouth_covered, laughs(mesh)
    )

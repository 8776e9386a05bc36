"""Swappers that take the source as a picture: blendswap, uniface.

Model files: `model` (inputs `source` [n, 3, source_size, source_size] and `target` [n, 3, size, size]). Parameters
beside the common ones (shared.vision.learned): `source_size`, `source_template`. The source is RGB in 0..1 whatever
the target's mean and deviation are.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.imaging.canvas import Still
from shared.vision.crops import align
from shared.vision.geometry import alignment, pose_of
from shared.vision.learned import LearnedSwapper, SourceRow
from shared.vision.parameters import Parameters
from shared.vision.pixels import UNIT
from shared.vision.protocols import ModelAssets, SourceFace
from shared.vision.runtime import Runtime


class ImageSourceSwapper(LearnedSwapper):
    """Swapper."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        super().__init__(assets, runtime)
        table = Parameters(assets)
        self._source_size = table.whole("source_size")
        self._source_template = table.text("source_template")

    def prepare(self, sources: Sequence[SourceFace]) -> SourceRow:
        """Of several pictures the most frontal: pictures cannot be averaged."""
        best = min(sources, key=lambda source: abs(pose_of(source.mesh).yaw))
        crop = align(Still(best.image), alignment(best), self._source_template, self._source_size)
        return SourceRow(UNIT.planes(crop.pixels[None])[0])

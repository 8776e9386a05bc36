"""Swappers trained on another recogniser's embeddings: simswap, ghost, hififace.

Model files: `model` (inputs `source` [n, 512] and `target` [n, 3, size, size]) and `converter`, a network from raw
ArcFace [n, 512] into the space of the recogniser that the swapper was trained with. Uses: `embedder`. Parameters beside
the common ones (shared.vision.learned): `converter_norm`, whether what the converter gives is brought to length 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.vision.learned import LearnedSwapper, SourceRow
from shared.vision.parameters import Parameters
from shared.vision.protocols import ModelAssets, SourceFace
from shared.vision.runtime import Runtime
from shared.vision.swapper.embedding import embedder_of, mean_raw, normed


class ConvertedSwapper(LearnedSwapper):
    """Swapper."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        super().__init__(assets, runtime)
        self._normed = Parameters(assets).flag("converter_norm")
        self._embedder = embedder_of(assets)
        self._converter = runtime.session(assets.files["converter"], threads=1)
        (self._input,) = self._converter.inputs

    def prepare(self, sources: Sequence[SourceFace]) -> SourceRow:
        """From the mean of the sources' raw embeddings: the converter is not linear and sees one person, once."""
        raw = mean_raw(self._embedder, sources)
        converted = self._converter.run({self._input: raw[None]})[0].reshape(-1)
        return SourceRow(normed(converted) if self._normed else converted)

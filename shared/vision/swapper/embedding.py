"""Swappers that take an ArcFace embedding as it is: hyperswap (length 1), alphaface (raw).

Model files: `model` (inputs `source` [n, 512] and `target` [n, 3, size, size]; the first output is the face). Uses:
`embedder`. Parameters beside the common ones (shared.vision.learned): `latent`, "raw" or "normed".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from shared.errors import ConfigError
from shared.vision.geometry import alignment
from shared.vision.learned import LearnedSwapper, SourceRow
from shared.vision.parameters import Parameters
from shared.vision.protocols import Embedder, Floats, ModelAssets, SourceFace
from shared.vision.runtime import Runtime


class EmbeddingSwapper(LearnedSwapper):
    """Swapper."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        super().__init__(assets, runtime)
        self._normed = Parameters(assets).choice("latent", ("raw", "normed")) == "normed"
        self._embedder = embedder_of(assets)

    def prepare(self, sources: Sequence[SourceFace]) -> SourceRow:
        """From the mean of the sources' raw embeddings, brought to length 1 where the network was trained on that."""
        raw = mean_raw(self._embedder, sources)
        return SourceRow(normed(raw) if self._normed else raw)


def embedder_of(assets: ModelAssets) -> Embedder:
    """Raises ConfigError when the catalogue names none."""
    if "embedder" not in assets.uses:
        raise ConfigError(f"The model {assets.name} must name the embedder that it uses.")
    return cast(Embedder, assets.uses["embedder"])


def mean_raw(embedder: Embedder, sources: Sequence[SourceFace]) -> Floats:
    """[512], the mean of the raw embeddings of one or more sources.

    Raw ones are longer the better a picture shows the person (ArcFace's length is a known measure of quality), so the
    mean trusts the better pictures more; nothing is averaged after a map that is not linear.
    """
    rows = [embedder.embed(source.image, [alignment(source)]) for source in sources]
    return cast(Floats, np.concatenate(rows).mean(axis=0))


def normed(vector: Floats) -> Floats:
    """At length 1."""
    return cast(Floats, vector / np.linalg.norm(vector))

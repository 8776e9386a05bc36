"""insightface's inswapper and its kin (ReSwapper): ArcFace through a fixed map, `emap`, into the network's own space.

Model files: `model` (inputs `target` [n, 3, size, size] RGB 0..1 and `source` [n, 512], one output 0..1) and `emap`
([512, 512] .npy, the graph's last initializer, taken out once when it is fetched). Uses: `embedder`. Parameters beside
the common ones (shared.vision.learned): `latent` = "emap", `renorm`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shared.errors import ModelInvalidError
from shared.vision.learned import LearnedSwapper, SourceRow
from shared.vision.parameters import Parameters
from shared.vision.protocols import Floats, ModelAssets, SourceFace
from shared.vision.runtime import Runtime
from shared.vision.swapper.embedding import embedder_of, mean_raw


class InSwapper(LearnedSwapper):
    """Swapper."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        super().__init__(assets, runtime)
        table = Parameters(assets)
        table.choice("latent", ("emap",))
        self._renorm = table.flag("renorm", default=True)
        self._embedder = embedder_of(assets)
        self._emap = np.load(assets.files["emap"], allow_pickle=False).astype(np.float32)
        if self._emap.shape != (512, 512):
            raise ModelInvalidError(f"{assets.name}: emap must be 512 x 512, not {self._emap.shape}")

    def prepare(self, sources: Sequence[SourceFace]) -> SourceRow:
        """From the mean of the sources' raw embeddings: sharp, frontal pictures have longer ones and count more."""
        return SourceRow(latent(mean_raw(self._embedder, sources), self._emap, renorm=self._renorm))


def latent(raw: Floats, emap: Floats, *, renorm: bool) -> Floats:
    """[512]: raw / |raw| through emap [512, 512].

    renorm: brought to length 1 again, as insightface and ReSwapper do; FaceFusion does not, and as emap is not quite a
    rotation its likeness is stronger or weaker from face to face.
    """
    mapped = (raw / np.linalg.norm(raw)) @ emap
    return mapped / np.linalg.norm(mapped) if renorm else mapped

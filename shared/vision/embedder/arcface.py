"""ArcFace recognisers (insightface's w600k_r50 and its kin): who a face is, as 512 numbers.

Model files: `model`, one input [n, 3, size, size] RGB, one output [n, 512]. Parameters: `size`, `template`, `mean`,
`std` (0.5 and 0.5: level / 127.5 - 1). Knows the runtime and crops.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shared.imaging.canvas import Still
from shared.vision.crops import align
from shared.vision.parameters import Parameters
from shared.vision.pixels import Pixels
from shared.vision.protocols import Floats, Image, ModelAssets
from shared.vision.runtime import Runtime

_WIDTH = 512


class ArcFace:
    """Embedder."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        table = Parameters(assets)
        self._size = table.whole("size")
        self._template = table.text("template")
        self._pixels = Pixels.read(table)
        session = runtime.session(assets.files["model"])
        (self._input,) = session.inputs  # `input` or `input.1`, by who exported it
        self._model = runtime.batches(session)

    def warm(self) -> None:
        self._embed(np.full((1, self._size, self._size, 3), 128, np.uint8))

    def embed(self, image: Image, points: Sequence[Floats]) -> Floats:
        """float32 [n, 512], raw: not brought to length 1, which every user does (or not) for itself.

        Raises numpy.linalg.LinAlgError for five points on one spot.
        """
        if not points:
            return np.empty((0, _WIDTH), np.float32)
        return self._embed(np.stack([align(Still(image), five, self._template, self._size).pixels for five in points]))

    def _embed(self, crops: Image) -> Floats:
        return self._model.run({self._input: self._pixels.planes(crops)})[0]

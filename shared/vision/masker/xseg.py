"""Occlusion masks of DeepFaceLab's XSeg networks: what covers the face (hands, hair, microphones) is not the face.

Model files: `model`. Parameters: `size` (256). Input `input` [n, size, size, 3] BGR / 255; output [n, size, size, 1],
the probability that a pixel is face. Knows the runtime.
"""

from __future__ import annotations

import numpy as np

from shared.imaging.masks import feather
from shared.vision.masker.fitting import fitted
from shared.vision.protocols import Floats, Image, ModelAssets
from shared.vision.runtime import Runtime


class XSeg:
    """Masker."""

    sees_swapped = False

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        self._batches = runtime.batches(runtime.session(assets.files["model"]))
        self._size = int(assets.parameters["size"])

    def warm(self) -> None:
        self.mask(np.zeros((1, self._size, self._size, 3), np.uint8))

    def mask(self, crops: Image) -> Floats:
        """uint8 [n, side, side, 3] -> float32 [n, side, side], 0 where the face is covered, feathered."""
        masks = np.empty(crops.shape[:3], np.float32)
        if len(crops):
            blob = np.multiply(fitted(crops, self._size), np.float32(1 / 255), dtype=np.float32)
            for index, face in enumerate(self._batches.run({"input": blob})[0][..., 0]):
                masks[index] = feather(np.clip(face, 0, 1), crops.shape[1])
        return masks

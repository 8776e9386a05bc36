"""Face restoration: GFPGAN, CodeFormer, GPEN and RestoreFormer++, which differ in numbers only.

Model files: `model`. Parameters: `size`, `template`, `weight_input` (CodeFormer: a second input `weight`, float64,
0 for looks to 1 for likeness) and then `weight` (0.5). Input `input` [n, 3, size, size] RGB in -1..1; first output
the same. Knows the runtime, crops and pasting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shared.imaging.look import Canvas
from shared.imaging.masks import box_mask
from shared.vision.crops import align
from shared.vision.geometry import five_points
from shared.vision.protocols import Floats, Image, ModelAssets
from shared.vision.runtime import Runtime

_FEATHER = 0.3
"""Of the box mask, as a part of half the crop; its padding is 0."""


class Restorer:
    """Enhancer."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        numbers = assets.parameters
        self._batches = runtime.batches(runtime.session(assets.files["model"]))
        self._size = int(numbers["size"])
        self._template = str(numbers["template"])
        self._weight = np.array([numbers.get("weight", 0.5)], np.float64) if numbers.get("weight_input") else None

    def warm(self) -> None:
        self._restored(np.zeros((1, self._size, self._size, 3), np.uint8))

    def enhance(self, frame: Canvas, meshes: Sequence[Floats], blend: float) -> None:
        """Restore the faces in place, all of them as they were before; blend 0 changes nothing.

        `blend` 0..1 is the share of the restored face. No pixel outside of a face's crop changes.
        """
        if blend <= 0 or not meshes:
            return
        crops = [align(frame, five_points(mesh), self._template, self._size) for mesh in meshes]
        mask = box_mask(self._size, _FEATHER) * np.float32(blend)
        restored = self._restored(np.stack([crop.pixels for crop in crops]))
        for crop, new in zip(crops, restored, strict=True):
            frame.lay(new, mask, crop.matrix)

    def _restored(self, crops: Image) -> Image:
        """uint8 [n, size, size, 3] BGR -> the same, rounded."""
        blob = crops[..., ::-1].transpose(0, 3, 1, 2) * np.float32(2 / 255) - np.float32(1)
        planes = np.clip(self._run(blob), -1, 1)
        levels = np.rint((planes + np.float32(1)) * np.float32(127.5)).astype(np.uint8)
        return np.ascontiguousarray(levels[:, ::-1].transpose(0, 2, 3, 1))

    def _run(self, blob: Floats) -> Floats:
        if self._weight is None:
            return self._batches.run({"input": blob})[0]
        # one weight holds for a whole run, and Batches splits every input by faces: so each face is a run
        faces = [self._batches.run({"input": face[None], "weight": self._weight})[0] for face in blob]
        return np.concatenate(faces)

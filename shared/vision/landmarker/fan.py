"""2dfan4 of "How far are we from solving the 2D & 3D Face Alignment problem?" (Bulat, ICCV 2017): 68 points.

Model files: `model`. Parameters: `size` (256), `mean`, `std`, `colour`. Input `input` [n, 3, 256, 256], x / 255, RGB as
it was trained (others feed BGR). Outputs: points [n, 68, 3] on a grid of 64 and heat maps [n, 68, 64, 64]
(engine.md part B). Knows the runtime and geometry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import cv2
import numpy as np

from shared.imaging.geometry import invert
from shared.imaging.warp import warp
from shared.vision.geometry import Region, pose_of
from shared.vision.parameters import Parameters
from shared.vision.protocols import Floats, FoundFace, Image, ModelAssets, SparseLandmarks
from shared.vision.runtime import Runtime

_GRID = 64
_POINTS = 68
_FACE = 195 / 256
"""Part of the crop that the longer side of the face takes."""
_SURE = 0.9
"""Mean of the heat maps' maxima on a face that is seen well: the score is a part of it."""
_DARK = 30
_CLIP = 2.0
"""Crops whose mean lightness (0..255) is below the first are spread out by CLAHE with the second as its limit."""


class Fan:
    """Refiner. All faces of a picture run together."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        """Raises ConfigError for a table that lacks a number."""
        table = Parameters(assets)
        self._size = table.whole("size")
        self._mean, self._std = np.float32(table.number("mean")), np.float32(table.number("std"))
        self._channels = slice(None, None, -1 if table.choice("colour", ("rgb", "bgr")) == "rgb" else 1)
        session = runtime.session(assets.files["model"])
        (self._input,) = session.inputs
        self._batches = runtime.batches(session)

    def warm(self) -> None:
        self._measure(np.zeros((1, self._size, self._size, 3), np.uint8))

    def refine(self, image: Image, faces: Sequence[FoundFace]) -> list[SparseLandmarks]:
        """Each face in a crop around its box, turned upright by its mesh."""
        if not faces:
            return []
        maps = [_region(face).matrix(self._size) for face in faces]
        backs = [invert(matrix) for matrix in maps]
        crops = [_lit(warp(image, back, (self._size, self._size))) for back in backs]
        points, scores = self._measure(np.stack(crops))
        placed = [local @ back[:, :2].T + back[:, 2] for local, back in zip(points, backs, strict=True)]
        return [SparseLandmarks(p.astype(np.float32), float(s)) for p, s in zip(placed, scores, strict=True)]

    def _measure(self, crops: Image) -> tuple[Floats, Floats]:
        """uint8 [n, size, size, 3] -> points [n, 68, 2] in pixels of the crops, scores [n]."""
        planes = crops[..., self._channels].transpose(0, 3, 1, 2)
        blob = (np.ascontiguousarray(planes, np.float32) - self._mean) / self._std
        points, heat = self._batches.run({self._input: blob})
        peaks = heat.reshape(len(crops), _POINTS, -1).max(axis=2).mean(axis=1)
        return points[:, :, :2] * np.float32(self._size / _GRID), np.clip(peaks / _SURE, 0, 1).astype(np.float32)


def _region(face: FoundFace) -> Region:
    x0, y0, x1, y1 = (float(side) for side in face.box)
    longest = max(x1 - x0, y1 - y0, 1.0)
    return Region((x0 + x1) / 2, (y0 + y1) / 2, longest / _FACE, np.deg2rad(pose_of(face.mesh).roll))


def _lit(crop: Image) -> Image:
    """A dark crop with its contrasts spread out; any other as it is."""
    lab = cv2.cvtColor(crop, cv2.COLOR_BGR2LAB)
    if lab[..., 0].mean() >= _DARK:
        return crop
    lab[..., 0] = cv2.createCLAHE(clipLimit=_CLIP).apply(lab[..., 0])
    return cast(Image, cv2.cvtColor(lab, cv2.COLOR_LAB2BGR))

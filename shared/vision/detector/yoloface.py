"""YOLOv8 face detectors with five points (yoloface_8n).

Model files: `model`. Input [1, 3, 640, 640], x / 255, RGB as YOLOv8 is trained (others feed BGR). Output [1, 20, n]:
centre, size, score, then five times x, y and a confidence, all in pixels of the input (engine.md part B).
"""

from __future__ import annotations

import numpy as np

from shared.vision.detector.looking import Candidates, Family, OneLook, rows
from shared.vision.protocols import Floats, ModelAssets
from shared.vision.runtime import Runtime

_NUMBERS = 20


class YoloFace(OneLook):
    """Detector; parameters as for OneLook."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        super().__init__(assets, runtime, Family(outputs=1, decode=decode, overlap=0.4))


def decode(outputs: list[Floats], sides: tuple[int, int], threshold: float) -> Candidates:  # noqa: ARG001 - absolute
    """Boxes around their centres; the points' own confidences are left out."""
    table = rows(outputs[0], _NUMBERS, outputs[0].shape[-1])
    found = table[:, np.flatnonzero(table[4] >= threshold)].T
    centre, half = found[:, :2], found[:, 2:4] / 2
    points = found[:, 5:].reshape(-1, 5, 3)[:, :, :2]
    return Candidates(np.concatenate([centre - half, centre + half], axis=1), points, found[:, 4])

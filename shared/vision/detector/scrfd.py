"""InsightFace's detectors with nine outputs: SCRFD and RetinaFace (retinaface_10g).

Model files: `model`. Input [1, 3, h, w], (x - 127.5) / 128, sides multiples of 32 or fixed; InsightFace feeds RGB.
Outputs: three times scores, boxes and points on grids of 8, 16 and 32 pixels, two to a cell, with or without an axis
for the batch. Distances are in cells (engine.md part B).
"""

from __future__ import annotations

import numpy as np

from shared.vision.detector.looking import Candidates, Family, OneLook, cells, joined, rows
from shared.vision.protocols import Floats, ModelAssets
from shared.vision.runtime import Runtime

_STRIDES = (8, 16, 32)
_ANCHORS = 2


class Scrfd(OneLook):
    """Detector; parameters as for OneLook."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        super().__init__(assets, runtime, Family(outputs=9, decode=decode, overlap=0.4))


def decode(outputs: list[Floats], sides: tuple[int, int], threshold: float) -> Candidates:
    """box = anchor -/+ distance x stride, point = anchor + offset x stride, anchor = corner of the cell."""
    grids = zip(_STRIDES, outputs[:3], outputs[3:6], outputs[6:], strict=True)
    return joined([_grid(stride, maps, sides, threshold) for stride, *maps in grids])


def _grid(stride: int, maps: list[Floats], sides: tuple[int, int], threshold: float) -> Candidates:
    columns = sides[1] // stride
    count = sides[0] // stride * columns * _ANCHORS
    scores, reach, offsets = (rows(m, count, width) for m, width in zip(maps, (1, 4, 10), strict=True))
    keep = np.flatnonzero(scores[:, 0] >= threshold)
    anchors = cells(keep, columns, _ANCHORS)
    corners = np.concatenate([anchors - reach[keep, :2], anchors + reach[keep, 2:]], axis=1)
    points = anchors[:, None] + offsets[keep].reshape(-1, 5, 2)
    return Candidates(corners * np.float32(stride), points * np.float32(stride), scores[keep, 0])

"""OpenCV's YuNet (yunet_2023_mar), MIT.

Model files: `model`. Input [1, 3, h, w], BGR 0..255, 640 x 640 in the published file. Outputs: three times class,
objectness, boxes and points on grids of 8, 16 and 32 pixels, one to a cell (engine.md part B).
"""

from __future__ import annotations

import numpy as np

from shared.vision.detector.looking import Candidates, Family, OneLook, cells, joined, rows
from shared.vision.protocols import Floats, ModelAssets
from shared.vision.runtime import Runtime

_STRIDES = (8, 16, 32)


class YuNet(OneLook):
    """Detector; parameters as for OneLook. Its score is class x objectness; OpenCV reports the square root of that."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        super().__init__(assets, runtime, Family(outputs=12, decode=decode, overlap=0.4))


def decode(outputs: list[Floats], sides: tuple[int, int], threshold: float) -> Candidates:
    """centre = (cell + offset) x stride, size = exp(v) x stride, point = (cell + offset) x stride."""
    grids = zip(_STRIDES, outputs[:3], outputs[3:6], outputs[6:9], outputs[9:], strict=True)
    return joined([_grid(stride, maps, sides, threshold) for stride, *maps in grids])


def _grid(stride: int, maps: list[Floats], sides: tuple[int, int], threshold: float) -> Candidates:
    columns = sides[1] // stride
    count = sides[0] // stride * columns
    classes, things, boxes, points = (rows(m, count, n) for m, n in zip(maps, (1, 1, 4, 10), strict=True))
    sure = (np.clip(classes, 0, 1) * np.clip(things, 0, 1))[:, 0]
    keep = np.flatnonzero(sure >= threshold)
    cell = cells(keep, columns)
    centre = cell + boxes[keep, :2]
    half = np.exp(boxes[keep, 2:]) / 2
    corners = np.concatenate([centre - half, centre + half], axis=1) * np.float32(stride)
    return Candidates(corners, (cell[:, None] + points[keep].reshape(-1, 5, 2)) * np.float32(stride), sure[keep])

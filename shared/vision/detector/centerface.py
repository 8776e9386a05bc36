"""CenterFace (MIT) with free input size.

Model files: `model`, the published network with its input and output sizes made free. Input [n, 3, h, w] RGB 0..255,
sides multiples of 32; outputs heat map, log sizes, offsets and five points on a grid of a quarter of the input.
Knows the runtime and nothing of what happens to the faces.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np

from shared.vision.detector.suppression import strongest
from shared.vision.protocols import Detection, Floats, Image, ModelAssets
from shared.vision.runtime import Runtime

_STRIDE = 4
_MULTIPLE = 32
"""The network halves its input five times."""
_OVERLAP = 0.3
"""Largest intersection over union of two faces."""


class _Maps(NamedTuple):
    heat: Floats
    """[h, w]"""
    size: Floats
    """[2, h, w]: log of height / 4, log of width / 4"""
    offset: Floats
    """[2, h, w]: y, x"""
    points: Floats
    """[10, h, w]: five times y, x as fractions of the box"""


class CenterFace:
    """Detector. A large picture is reduced, a small one enlarged to the asked size (engine.md: 13 px faces need it)."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        self._session = runtime.session(assets.files["model"])

    def warm(self) -> None:
        self.detect(np.zeros((64, 64, 3), np.uint8), size=320)

    def detect(self, image: Image, *, size: int = 640, threshold: float = 0.5) -> list[Detection]:
        """Faces whose heat is above `threshold`, strongest first, boxes clipped to the picture."""
        height, width = image.shape[:2]
        ratio = size / max(height, width)
        w, h = max(1, round(width * ratio)), max(1, round(height * ratio))
        interpolation = cv2.INTER_AREA if ratio < 1 else cv2.INTER_LINEAR
        seen = image if (w, h) == (width, height) else cv2.resize(image, (w, h), interpolation=interpolation)
        padded = np.zeros((1, 3, _round_up(h), _round_up(w)), np.float32)
        padded[0, :, :h, :w] = seen[:, :, ::-1].transpose(2, 0, 1)
        heat, sizes, offsets, points = self._session.run({"input.1": padded})
        maps = _Maps(heat[0, 0], sizes[0], offsets[0], points[0])
        boxes, five, scores = decode(maps, threshold)
        scale = np.array([width / w, height / h], np.float32)
        boxes = np.clip(boxes.reshape(-1, 2, 2), 0, np.array([w, h], np.float32)) * scale
        return [
            Detection(box.reshape(4), float(score), p * scale)
            for box, score, p in zip(boxes, scores, five, strict=True)
        ]


def decode(maps: _Maps, threshold: float) -> tuple[Floats, Floats, Floats]:
    """Boxes [n, 4] (x0, y0, x1, y1), points [n, 5, 2] and scores [n] in pixels of the network's input."""
    ys, xs = np.nonzero(maps.heat > threshold)
    scores = maps.heat[ys, xs]
    tall, wide = np.exp(maps.size[:, ys, xs]) * _STRIDE
    cy = (ys + maps.offset[0, ys, xs] + 0.5) * _STRIDE
    cx = (xs + maps.offset[1, ys, xs] + 0.5) * _STRIDE
    x0, y0 = cx - wide / 2, cy - tall / 2
    local = maps.points[:, ys, xs]
    # the network measures points from the box as far as it lies inside the picture
    px = local[1::2] * wide + np.maximum(x0, 0)
    py = local[0::2] * tall + np.maximum(y0, 0)
    boxes = np.stack([x0, y0, x0 + wide, y0 + tall], 1).astype(np.float32)
    keep = strongest(boxes, scores, _OVERLAP)
    points = np.stack([px, py], -1).transpose(1, 0, 2)[keep].astype(np.float32)
    return boxes[keep], points, scores[keep]


def _round_up(pixels: int) -> int:
    return -(-pixels // _MULTIPLE) * _MULTIPLE

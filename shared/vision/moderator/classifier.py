"""Picture classifiers that tell safe from unsafe, a class or more of each: one table of the catalogue makes one.

Model files: `model`. Input [n, 3, size, size], RGB, (x / 255 - mean) / std; output [n, classes], logits. Knows the
runtime; OpenCV does the resizing.
"""

from __future__ import annotations

import cv2
import numpy as np

from shared.errors import ConfigError
from shared.vision.parameters import Parameters
from shared.vision.pixels import Pixels
from shared.vision.protocols import Image, ModelAssets
from shared.vision.runtime import Runtime


class Classifier:
    """Moderator. Parameters: `size`; `mean`, `std` (as Pixels); `unsafe`, the unsafe classes' indices, by commas."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        table = Parameters(assets)
        self._session = runtime.session(assets.files["model"])
        self._input = next(iter(self._session.inputs))
        self._size = table.whole("size")
        self._pixels = Pixels.read(table)
        self._unsafe = _indices(assets.name, table.text("unsafe"))

    def warm(self) -> None:
        self.score(np.zeros((self._size, self._size, 3), np.uint8))

    def score(self, image: Image) -> float:
        """Softmax probability of the unsafe classes together."""
        (logits,) = self._session.run({self._input: self._pixels.planes(letterboxed(image, self._size)[None])})
        chances = np.exp(logits[0] - logits[0].max())
        return float(chances[self._unsafe].sum() / chances.sum())


def letterboxed(image: Image, size: int) -> Image:
    """The whole picture on a black square, centred."""
    height, width = image.shape[:2]
    scale = size / max(width, height)
    wide, high = max(1, round(width * scale)), max(1, round(height * scale))
    square = np.zeros((size, size, 3), np.uint8)
    left, top = (size - wide) // 2, (size - high) // 2
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    square[top : top + high, left : left + wide] = cv2.resize(image, (wide, high), interpolation=how)
    return square


def _indices(model: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"The model {model}: unsafe must be indices of classes, joined by commas.") from None

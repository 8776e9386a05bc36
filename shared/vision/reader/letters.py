"""What a line says: straightened crops through a recogniser, its characters by greedy CTC decoding.

Knows OpenCV, numpy and batches of a session; no file but the list of characters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.vision.batches import Batches
from shared.vision.parameters import Parameters
from shared.vision.protocols import Floats, Image

_BLANK = 0
"""Class of "no character here", before those of the list; a space comes after them (PaddleOCR)."""


def characters(path: Path) -> tuple[str, ...]:
    """What each class of the recogniser stands for, of a file with one character a line."""
    return ("", *path.read_text(encoding="utf-8").split("\n"), " ")


class LineReader:
    def __init__(self, batches: Batches, known: Sequence[str], table: Parameters) -> None:
        """Parameters: `height`, least `width` and `longest` of a crop, `rows` of that width in a run, `mean`, `std`."""
        self._batches = batches
        self._known = np.array(known)
        self._height, self._rows = table.whole("height"), table.whole("rows")
        self._width, self._longest = table.whole("width"), table.whole("longest")
        self._mean, self._std = table.number("mean"), table.number("std")

    def read(self, crops: Sequence[Image]) -> list[tuple[str, float]]:
        """Text and mean probability of its characters for each crop; an empty text and 0 where nothing was read."""
        widths = [self._width_of(crop) for crop in crops]
        found: list[tuple[str, float]] = [("", 0.0)] * len(crops)
        for chosen in self._groups(widths):
            fed = self._fed([crops[index] for index in chosen], [widths[index] for index in chosen])
            (chances,) = self._batches.run({"x": fed})
            for index, row in zip(chosen, chances, strict=True):
                found[index] = decoded(row, self._known)
        return found

    def _width_of(self, crop: Image) -> int:
        return int(min(self._longest, max(8, np.ceil(self._height * crop.shape[1] / crop.shape[0]))))

    def _groups(self, widths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of crops that share a run: alike in width, and never more than `rows` of `width` together."""
        group: list[int] = []
        for index in np.argsort(widths, kind="stable").tolist():
            if group and (len(group) + 1) * max(self._width, widths[index]) > self._rows * self._width:
                yield group
                group = []
            group.append(index)
        if group:
            yield group

    def _fed(self, crops: Sequence[Image], widths: Sequence[int]) -> Floats:
        """[n, 3, height, widest]; what a shorter line leaves free is 0, the middle grey."""
        fed = np.zeros((len(crops), 3, self._height, max(self._width, *widths)), np.float32)
        for row, crop, width in zip(fed, crops, widths, strict=True):
            small = cv2.resize(crop, (width, self._height), interpolation=cv2.INTER_LINEAR)
            row[:, :, :width] = planes(small, self._mean, self._std)
        return fed


def planes(image: NDArray[Any], mean: float, std: float) -> Floats:
    """uint8 [h, w, 3] -> float32 [3, h, w] in the same order of channels: PaddleOCR's networks take BGR."""
    scaled = image.transpose(2, 0, 1).astype(np.float32)
    scaled *= np.float32(1 / (255 * std))
    scaled -= np.float32(mean / std)
    return scaled


def decoded(chances: Floats, known: NDArray[np.str_]) -> tuple[str, float]:
    """[steps, classes] -> text and mean probability: the likeliest class of each step, repeats and blanks left out."""
    best = chances.argmax(axis=1)
    kept = (best != _BLANK) & (best != np.concatenate([[-1], best[:-1]]))
    if not kept.any():
        return "", 0.0
    return "".join(known[best[kept]]), float(chances.max(axis=1)[kept].mean())

"""PaddleOCR's pair of networks (PP-OCRv6, Apache-2.0): one finds lines of text, the other reads them.

Model files: `detector`, `recogniser`, `characters` (made from the recogniser's own metadata). Detector input
[1, 3, h, w], sides multiples of 32; recogniser input [n, 3, 48, w]. Both BGR, (x / 255 - mean) / std. Numbers are those
of PaddleOCR's published configuration, in the catalogue. Lines upside down are found and not read. Knows the runtime.
"""

from __future__ import annotations

from typing import cast

import cv2
import numpy as np

from shared.vision.parameters import Parameters
from shared.vision.protocols import Floats, Image, ModelAssets, TextLine
from shared.vision.reader.letters import LineReader, characters, planes
from shared.vision.reader.lines import LineFinder, crop
from shared.vision.runtime import Runtime

_STEP = 32
_SAMPLE = 64
_DETAIL = 2
"""Times the recogniser's height at which a larger line is cut out, to be shrunk without breaking strokes."""


class PpOcr:
    """Reader. Parameters: `least` and `most` (pixels, see `_size`), `score` (surest lines only), and those of
    LineFinder and LineReader."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        table = Parameters(assets)
        self._detector = runtime.session(assets.files["detector"])
        recogniser = runtime.batches(runtime.session(assets.files["recogniser"]))
        self._finder = LineFinder.read(table)
        self._lines = LineReader(recogniser, characters(assets.files["characters"]), table)
        self._least, self._most = table.whole("least"), table.whole("most")
        self._mean, self._std = table.number("mean"), table.number("std")
        self._highest = _DETAIL * table.whole("height")
        self._score = table.number("score")

    def warm(self) -> None:
        sample = np.zeros((_SAMPLE, _SAMPLE, 3), np.uint8)
        self.read(sample)
        self._lines.read([sample])

    def read(self, image: Image) -> list[TextLine]:
        height, width = image.shape[:2]
        boxes = self._finder.find(self._map(image), width, height)
        texts = self._lines.read([crop(image, box, self._highest) for box in boxes])
        found = [TextLine(text, score, box) for box, (text, score) in zip(boxes, texts, strict=True)]
        return [line for line in found if line.text.strip() and line.score >= self._score]

    def _map(self, image: Image) -> Floats:
        """[h, w]: how likely each pixel of the resized picture is text."""
        size = self._size(image.shape[1], image.shape[0])
        shrinks = size[0] < image.shape[1]
        resized = cv2.resize(image, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        (text,) = self._detector.run({"x": planes(resized, self._mean, self._std)[None]})
        return cast("Floats", text[0, 0])

    def _size(self, width: int, height: int) -> tuple[int, int]:
        """What the detector looks at: enlarged until the shorter side has `least` pixels, the longer never over `most`.

        PaddleOCR's own setting knows no `most`: its memory grows with the picture.
        """
        scale = min(self._most / max(width, height), max(1.0, self._least / min(width, height)))
        wide, high = (max(_STEP, round(side * scale / _STEP) * _STEP) for side in (width, height))
        return wide, high

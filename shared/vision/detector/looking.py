"""What detectors of one run and one decoding share: how the picture gets into the network and its faces out again.

The picture is scaled to the asked size, laid into the upper left corner of what the network takes, and the rest is
black. Knows the runtime; the decoding is each family's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.errors import ModelInvalidError
from shared.vision.detector.suppression import strongest
from shared.vision.parameters import Parameters
from shared.vision.protocols import Detection, Floats, Image, ModelAssets
from shared.vision.runtime import Runtime
from shared.vision.session import Session

_MULTIPLE = 32
"""The coarsest grid of every family."""


class Candidates(NamedTuple):
    """What a network says, pixels of its input, several times the same face."""

    boxes: Floats
    """[n, 4]: x0, y0, x1, y1"""
    points: Floats
    """[n, 5, 2]"""
    scores: Floats
    """[n]"""


Decode: TypeAlias = Callable[[list[Floats], tuple[int, int], float], Candidates]
"""Outputs in the graph's order, height and width of the input, smallest score -> candidates of at least that score."""


@dataclass(frozen=True)
class Family:
    """What all models of a family have in common."""

    outputs: int
    decode: Decode
    overlap: float
    """Largest intersection over union of two faces."""


class OneLook:
    """Detector. Parameters: `size` (usual side of the input), `mean` and `std` in grey levels, `colour` (`rgb` or `bgr`
    as the network was trained), `score` (smaller ones are noise, whatever threshold is asked for)."""

    def __init__(self, assets: ModelAssets, runtime: Runtime, family: Family) -> None:
        """Raises ConfigError for a table that lacks a number, ModelInvalidError for another number of outputs."""
        self._session = runtime.session(assets.files["model"])
        self._family = family
        table = Parameters(assets)
        self._size, self._score = table.whole("size"), table.number("score")
        self._mean, self._std = np.float32(table.number("mean")), np.float32(table.number("std"))
        self._channels = slice(None, None, -1 if table.choice("colour", ("rgb", "bgr")) == "rgb" else 1)
        if len(self._session.outputs) != family.outputs:
            raise ModelInvalidError(f"{assets.name} has {len(self._session.outputs)} outputs, not {family.outputs}")
        self._input, self._sides = _input(self._session)

    def warm(self) -> None:
        self.detect(np.zeros((64, 64, 3), np.uint8), size=self._size)

    def detect(self, image: Image, *, size: int = 640, threshold: float = 0.5) -> list[Detection]:
        """Faces of at least `threshold`, surest first, boxes clipped to the picture.

        A network whose input has fixed sides looks at no more than they hold.
        """
        seen = self._scaled(image, size)
        blob = self._blob(seen)
        outputs = self._session.run({self._input: blob})
        found = self._family.decode(outputs, blob.shape[2:], max(threshold, self._score))
        kept = strongest(found.boxes, found.scores, self._family.overlap)
        return _placed(Candidates(*(part[kept] for part in found)), seen, image)

    def _scaled(self, image: Image, size: int) -> Image:
        height, width = image.shape[:2]
        ratio = size / max(height, width)
        if self._sides is not None:
            ratio = min(ratio, self._sides[0] / height, self._sides[1] / width)
        w, h = max(1, round(width * ratio)), max(1, round(height * ratio))
        if (w, h) == (width, height):
            return image
        return cast(Image, cv2.resize(image, (w, h), interpolation=cv2.INTER_AREA if ratio < 1 else cv2.INTER_LINEAR))

    def _blob(self, seen: Image) -> Floats:
        """[1, 3, height, width]"""
        height, width = seen.shape[:2]
        sides = self._sides or (_round_up(height), _round_up(width))
        blob = np.full((1, 3, *sides), -self._mean / self._std, np.float32)
        planes = seen[:, :, self._channels].transpose(2, 0, 1)
        blob[0, :, :height, :width] = (planes - self._mean) / self._std
        return blob


def cells(keep: NDArray[np.intp], columns: int, anchors: int = 1) -> Floats:
    """[n, 2]: column and row, of the numbers of outputs that lie row by row on a grid, `anchors` to a cell."""
    cell = keep // anchors
    return np.stack([cell % columns, cell // columns], axis=1).astype(np.float32)


def rows(values: Floats, count: int, width: int) -> Floats:
    """An output as [count, width], whether or not the graph keeps an axis for the batch. Raises ModelInvalidError."""
    if values.size != count * width:
        raise ModelInvalidError(f"The network gives {values.size} numbers where {count} x {width} were expected")
    return values.reshape(count, width)


def joined(parts: list[Candidates]) -> Candidates:
    """The candidates of all grids."""
    boxes, points, scores = (np.concatenate(values) for values in zip(*parts, strict=True))
    return Candidates(boxes, points, scores)


def _placed(found: Candidates, seen: Image, image: Image) -> list[Detection]:
    """Back in the picture; a box that lies in the black rest alone is none of its faces."""
    scale = np.array([image.shape[1] / seen.shape[1], image.shape[0] / seen.shape[0]], np.float32)
    limits = np.array(image.shape[1::-1], np.float32)
    boxes = np.clip(found.boxes.reshape(-1, 2, 2) * scale, 0, limits).reshape(-1, 4)
    return [
        Detection(box, float(score), points * scale)
        for box, points, score in zip(boxes, found.points, found.scores, strict=True)
        if (box[2:] > box[:2]).all()
    ]


def _input(session: Session) -> tuple[str, tuple[int, int] | None]:
    """The input's name and its height and width, None where they are free."""
    (port,) = session.inputs.values()
    height, width = port.shape[2:]
    return port.name, (height, width) if isinstance(height, int) and isinstance(width, int) else None


def _round_up(pixels: int) -> int:
    return -(-pixels // _MULTIPLE) * _MULTIPLE

"""Where text stands: a network's map of text pixels as oriented boxes (Differentiable Binarization, arXiv:1911.08947).

Knows OpenCV and numpy; no model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.vision.parameters import Parameters
from shared.vision.protocols import Floats, Image

_THINNEST = 3.0
"""Shorter side in pixels of the map below which a region is noise, as PaddleOCR has it; grown it must have 2 more."""
_TALL = 1.5
"""Height over width from which a line is taken to run downwards (PaddleOCR)."""


@dataclass(frozen=True)
class LineFinder:
    """Numbers of PaddleOCR's DBPostProcess."""

    threshold: float
    """Probability from which a pixel is text."""
    box_threshold: float
    """Mean probability within a box from which it is a line."""
    unclip: float
    """The map shows lines shrunk; a box grows by its area times this over its perimeter on every side."""
    candidates: int
    """Most regions that are looked at."""

    @classmethod
    def read(cls, table: Parameters) -> LineFinder:
        thresholds = table.number("threshold"), table.number("box_threshold")
        return cls(*thresholds, table.number("unclip"), table.whole("candidates"))

    def find(self, text: Floats, width: int, height: int) -> list[Floats]:
        """Boxes [4, 2], clockwise from the top left corner, in pixels of a picture of that size, in reading order.

        `text` [h, w]: probability of each pixel of the map, which shows the whole picture.
        """
        mask = cv2.dilate((text > self.threshold).astype(np.uint8), np.ones((2, 2), np.uint8))
        contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        scale = np.array([width / text.shape[1], height / text.shape[0]], np.float32)
        most = np.array([width, height], np.float32)
        boxes = [np.clip(box * scale, 0, most) for box in self._boxes(text, contours[: self.candidates])]
        return in_reading_order(boxes)

    def _boxes(self, text: Floats, contours: Sequence[NDArray[Any]]) -> Iterator[Floats]:
        for contour in contours:
            centre, (wide, high), angle = cv2.minAreaRect(contour)
            if min(wide, high) < _THINNEST or _mean(text, _corners(centre, wide, high, angle)) < self.box_threshold:
                continue
            # a rectangle that grows by the same distance on every side stays one: no polygon clipper is needed
            grown = 2 * wide * high * self.unclip / (2 * (wide + high))
            if min(wide, high) + grown >= _THINNEST + 2:
                yield _corners(centre, wide + grown, high + grown, angle)


def in_reading_order(boxes: list[Floats]) -> list[Floats]:
    """From top to bottom; boxes whose middles differ by less than half their height from left to right."""
    rows: list[list[Floats]] = []
    for box in sorted(boxes, key=_middle):
        if rows and _middle(box) - _middle(rows[-1][0]) < _height(rows[-1][0]) / 2:
            rows[-1].append(box)
        else:
            rows.append([box])
    return [box for row in rows for box in sorted(row, key=lambda box: float(box[:, 0].min()))]


def crop(image: Image, box: Floats, highest: int) -> Image:
    """The line straightened, at most `highest` pixels high; one that runs downwards is turned to run to the right."""
    wide = max(1.0, float(np.linalg.norm(box[1] - box[0])), float(np.linalg.norm(box[2] - box[3])))
    high = max(1.0, float(np.linalg.norm(box[3] - box[0])), float(np.linalg.norm(box[2] - box[1])))
    downwards = high >= _TALL * wide
    shrink = min(1.0, highest / (wide if downwards else high))
    size = max(1, round(wide * shrink)), max(1, round(high * shrink))
    corners = np.array([[0, 0], [size[0], 0], [size[0], size[1]], [0, size[1]]], np.float32)
    matrix = cv2.getPerspectiveTransform(box.astype(np.float32), corners)
    line = cv2.warpPerspective(image, matrix, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return cast("Image", cv2.rotate(line, cv2.ROTATE_90_COUNTERCLOCKWISE) if downwards else line)


def _corners(centre: Sequence[float], wide: float, high: float, angle: float) -> Floats:
    """[4, 2], clockwise from the top left one: the upper of the two on the left."""
    points = cv2.boxPoints(((centre[0], centre[1]), (wide, high), angle))
    left, right = np.split(points[np.argsort(points[:, 0], kind="stable")], 2)
    top_left, bottom_left = left[np.argsort(left[:, 1], kind="stable")]
    top_right, bottom_right = right[np.argsort(right[:, 1], kind="stable")]
    return np.array([top_left, top_right, bottom_right, bottom_left], np.float32)


def _mean(text: Floats, box: Floats) -> float:
    """Mean of the map within the box."""
    x0, y0 = np.clip(np.floor(box.min(0)), 0, None).astype(int)
    x1, y1 = np.ceil(box.max(0)).astype(int) + 1
    part = text[y0:y1, x0:x1]
    mask = np.zeros(part.shape, np.uint8)
    cv2.fillPoly(mask, [(box - (x0, y0)).astype(np.int32)], 1)
    return float(cv2.mean(part, mask)[0])


def _middle(box: Floats) -> float:
    return float(box[:, 1].mean())


def _height(box: Floats) -> float:
    return float(np.linalg.norm(box[3] - box[0]))

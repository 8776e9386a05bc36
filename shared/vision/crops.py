"""Faces cut out upright: from five points to the square crop a network was trained on, and the map that leads back.

Knows the templates and the imaging library, no model.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import invert, similarity
from shared.imaging.look import Canvas
from shared.vision.protocols import Floats, Image
from shared.vision.templates import template as points_of


class Crop(NamedTuple):
    pixels: Image
    """uint8 [size, size, 3], a copy."""
    matrix: NDArray[np.float64]
    """[2, 3], pixels of the frame to pixels of the crop, whole numbers at pixel centres."""


def align(frame: Canvas, points: Floats, template: str, size: int, *, native: int = 0, exact: bool = False) -> Crop:
    """The face whose refined five points [5, 2] are given, upright at the template's place, `size` pixels a side.

    native: the side the network works at, where the crop is larger (pixel boost); 0 means `size`. See `alignment`.
    exact: bilinear from the frame's own pixels, as insightface's norm_crop2 does; large faces alias. Without it a
    face larger than the crop is averaged down. Beyond the frame its edge repeats (exact: black, as there).
    Raises ModelInvalidError for an unknown template, numpy.linalg.LinAlgError for five points on one spot.
    """
    matrix = alignment(points, template, size, native=native)
    if exact:
        pixels = cv2.warpAffine(frame.part((0, 0, *frame.size)), matrix, (size, size))
        return Crop(np.asarray(pixels, np.uint8), matrix)
    return Crop(frame.cut(invert(matrix), (size, size)), matrix)


def alignment(points: Floats, template: str, size: int, *, native: int = 0) -> NDArray[np.float64]:
    """[2, 3] least-squares similarity, frame to crop.

    Boosted by k = size / native, the network sees the crop in k x k tiles, each every k-th pixel; pixel r of a tile
    stands for pixels k r ... k r + k - 1, whose middle is k r + (k - 1) / 2. So a point that belongs to r at the native
    size belongs there: the half-pixel term, without which every tile shows the face (k - 1) / 2 pixels off.
    """
    half = (size / (native or size) - 1) / 2
    return similarity(points, points_of(template) * size + half)

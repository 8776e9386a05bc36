"""How a face moved from one frame to the next, told from its pixels: finer than two meshes could be compared.

A mesh model's answer depends on where its crop lies: a few hundredths of the eye distance from frame to frame, on a
face at rest as well. Pixels know the motion to a few hundredths of a pixel; the crop then moves along with the face.
Measured on a still that follows a known path (61 px between the eyes): meshes from detections 0.29 px RMS off, seeded
by the last mesh 0.26, in crops moved by the flow 0.09, and 0.04 smoothed along the flow. Knows looks and geometry.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np

from shared.imaging.geometry import Doubles, invert
from shared.imaging.look import Look
from shared.vision.geometry import region_from_mesh
from shared.vision.protocols import Floats, Image
from shared.vision.tracking.looks import upright

_SIDE = 128
"""Of the grey crops: a face takes two thirds of it."""
_EVERY = 6
"""Vertices of the mesh, of 468."""
_FEWEST = 12
_WINDOW = (13, 13)
_LEVELS = 3
_ROUNDS = 5
_LOOSE = 2.5
"""Median distance in crop pixels beyond which the points do not move as one face."""


class Patch(NamedTuple):
    """The pixels around a face, as they are compared."""

    grey: Image
    """uint8 [_SIDE, _SIDE]"""
    matrix: Doubles
    """[2, 3], frame to crop."""


def patch(look: Look, mesh: Floats) -> Patch:
    """Around a mesh [468, 3], upright; beyond the frame its edge repeats."""
    around = region_from_mesh(mesh)
    back = upright(look, around, _SIDE)
    grey = np.zeros((_SIDE, _SIDE), np.uint8) if back is None else look.grey(back, (_SIDE, _SIDE))
    return Patch(grey, around.matrix(_SIDE))


def motion(before: Patch, after: Patch, mesh: Floats, guess: Floats) -> Doubles | None:
    """[3, 3]: the similarity that takes the frame before to the one after, on the face.

    `mesh` [468, 3] in the frame before, `guess` [468, 3] where it is expected in the other. None where the pixels do
    not tell. Lucas-Kanade in pyramids (Bouguet 2000), then least squares with Tukey's weights.
    """
    start = _into(mesh[::_EVERY], before.matrix)
    near = _into(guess[::_EVERY], after.matrix)
    flags = cv2.OPTFLOW_USE_INITIAL_FLOW
    ends, found, _ = cv2.calcOpticalFlowPyrLK(
        before.grey, after.grey, start, near, winSize=_WINDOW, maxLevel=_LEVELS, flags=flags
    )
    good = found.ravel() == 1
    if good.sum() < _FEWEST:
        return None
    fit, spread = _robust(start[good].astype(np.float64), ends[good].astype(np.float64))
    if spread > _LOOSE:
        return None
    return _square(invert(after.matrix)) @ fit @ _square(before.matrix)


def moved(mesh: Floats, way: Doubles) -> Floats:
    """A mesh [n, 3] through a similarity of the plane [3, 3]; depth keeps its proportion."""
    scale = float(np.hypot(way[0, 0], way[1, 0]))
    flat = mesh[:, :2] @ way[:2, :2].T + way[:2, 2]
    return np.column_stack([flat, mesh[:, 2] * scale]).astype(np.float32)


def shift(x: float, y: float) -> Doubles:
    """[3, 3]"""
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1]], np.float64)


def _robust(a: Doubles, b: Doubles) -> tuple[Doubles, float]:
    """[3, 3] similarity from a [n, 2] to b, and the median distance of what is left.

    Points are complex numbers here: a similarity is one factor and one shift.
    """
    start, end = a[:, 0] + 1j * a[:, 1], b[:, 0] + 1j * b[:, 1]
    weights = np.ones(len(a))
    for _ in range(_ROUNDS):
        total = weights.sum()
        middle_a, middle_b = weights @ start / total, weights @ end / total
        p, q = start - middle_a, end - middle_b
        turn = complex(weights @ (p.conj() * q)) / max(float(weights @ (p.real**2 + p.imag**2)), 1e-9)
        rest = np.abs(turn * p - q)
        median = float(np.median(rest))
        weights = np.clip(1 - (rest / (4.5 * max(median, 0.02))) ** 2, 0, None) ** 2 + 1e-9
    shift_by = complex(middle_b - turn * middle_a)
    c, s = turn.real, turn.imag
    return np.array([[c, -s, shift_by.real], [s, c, shift_by.imag], [0, 0, 1]]), median


def _into(mesh: Floats, matrix: Doubles) -> Floats:
    return (mesh[:, :2] @ matrix[:, :2].T + matrix[:, 2]).astype(np.float32)


def _square(matrix: Doubles) -> Doubles:
    return np.vstack([matrix, [0, 0, 1]])

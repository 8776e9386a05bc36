"""What tells two people apart: a recogniser's vector where there is one, else a small picture of face and hair.

Knows looks and geometry.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from shared.imaging.look import Look
from shared.vision.geometry import Region, five_points, region_from_mesh
from shared.vision.protocols import Embedder, Floats
from shared.vision.tracking.looks import Nearby, upright

_SIDE = 16
_WIDE = 0.85
"""Of the mesh model's crop: face and hair, little of what is behind."""
_OTHER = 0.16
"""Mean difference of grey levels (0..1) from which small pictures show two people. Measured: one face in neighbouring
frames 0.00-0.03, two people of one group photograph 0.10-0.3."""
_SAME_COSINE, _OTHER_COSINE = 0.6, 0.1
"""ArcFace: pictures of one person 0.4-0.8, of two people -0.1-0.2."""


@dataclass(frozen=True)
class Appearance:
    small: Floats
    """[_SIDE, _SIDE, 3], 0..1"""
    vector: Floats | None = None
    """[512], raw: its length says how well the person is seen."""


def small_picture(look: Look, mesh: Floats) -> Floats:
    """[16, 16, 3], 0..1, upright."""
    around = region_from_mesh(mesh)
    back = upright(look, Region(around.x, around.y, around.side * _WIDE, around.angle), _SIDE)
    if back is None:
        return np.zeros((_SIDE, _SIDE, 3), np.float32)
    pixels = look.glimpse(back, (_SIDE, _SIDE))
    return np.asarray(cv2.GaussianBlur(pixels, (3, 3), 0), np.float32) / np.float32(255)


def vector_of(near: Nearby, mesh: Floats, embedder: Embedder) -> Floats:
    """[512], raw."""
    if near.hidden:
        return np.zeros(512, np.float32)
    five = (five_points(mesh) - np.array(near.span[:2], np.float32)).astype(np.float32)
    return np.asarray(embedder.embed(near.pixels, [five])[0], np.float32)


def difference(a: Appearance, b: Appearance) -> float:
    """0 for one person, 1 and more for two."""
    if a.vector is not None and b.vector is not None:
        return (_SAME_COSINE - cosine(a.vector, b.vector)) / (_SAME_COSINE - _OTHER_COSINE)
    return float(np.abs(a.small - b.small).mean()) / _OTHER


def cosine(a: Floats, b: Floats) -> float:
    return float(a @ b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-12)

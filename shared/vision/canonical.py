"""The canonical face: mean shape, unrolled layout, mirror pairs and triangles of the 468-point mesh.

The numbers lie beside this file as text tables with their provenance. Knows numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shared.vision.protocols import Floats

Indices = NDArray[np.int32]

# Vertex loops of the mesh model's documented topology; A is the viewer's left side.
OVAL = [
    10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377,
    152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109,
]  # fmt: skip
EYE_A = [33, 246, 161, 160, 159, 158, 157, 173, 133, 155, 154, 153, 145, 144, 163, 7]
EYE_B = [263, 466, 388, 387, 386, 385, 384, 398, 362, 382, 381, 380, 374, 373, 390, 249]
BROW_A = [70, 63, 105, 66, 107, 55, 65, 52, 53, 46]
BROW_B = [300, 293, 334, 296, 336, 285, 295, 282, 283, 276]
LIPS_INNER = [78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308, 324, 318, 402, 317, 14, 87, 178, 88, 95]
LIPS_OUTER = [61, 185, 40, 39, 37, 0, 267, 269, 270, 409, 291, 375, 321, 405, 314, 17, 84, 181, 91, 146]
NOSE_BASE = [98, 97, 2, 326, 327, 294, 278, 344, 440, 275, 4, 45, 220, 115, 48, 64]


@dataclass(frozen=True)
class CanonicalFace:
    """Read-only tables; one unit of `mean` is the distance between the outer eye corners."""

    mean: Floats
    """[468, 3]: x right, y down, z away from the viewer."""
    uv: Floats
    """[468, 2] in the unit square, symmetric about u = 0.5."""
    pair: Indices
    """[468]: the vertex that takes this one's place in a mirrored picture."""
    triangles: Indices
    """[898, 3], equally oriented in uv and, facing the camera, in the picture."""


@cache
def canonical() -> CanonicalFace:
    """Read the tables once per process."""
    vertices = _table("canonical_vertices.csv")
    triangles = _table("canonical_triangles.csv")
    face = CanonicalFace(
        mean=np.ascontiguousarray(vertices[:, 0:3], np.float32),
        uv=np.ascontiguousarray(vertices[:, 3:5], np.float32),
        pair=vertices[:, 5].astype(np.int32),
        triangles=np.ascontiguousarray(triangles[:, :3], np.int32),
    )
    for table in (face.mean, face.uv, face.pair, face.triangles):
        table.setflags(write=False)
    return face


def _table(name: str) -> NDArray[np.float64]:
    lines = (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if not line.startswith("#")][1:]
    return np.array([row.split(",") for row in rows], np.float64)

"""Which parts of a face the camera sees.

Knows the mesh and the texture square; no picture.
"""

from __future__ import annotations

from functools import cache
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.vision.canonical import canonical
from shared.vision.protocols import Floats
from shared.vision.swapper.filters import blur, sample, smoothstep
from shared.vision.swapper.raster import triangle_ids
from shared.vision.swapper.uv import uv_grid

_DEPTH_WIDTH = 128
"""Face width in pixels of the depth test."""
_FAR = np.float32(1e3)


def facing(mesh: Floats) -> Floats:
    """[468]: cosine between the surface normal and the line of sight, 1 towards the camera, negative away."""
    corners = mesh[canonical().triangles]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    triangles, starts = _triangles_of_vertices()
    sums = np.add.reduceat(normals[triangles], starts, axis=0)
    return cast(Floats, (sums[:, 2] / (np.linalg.norm(sums, axis=1) + 1e-6)).astype(np.float32))


@cache
def _triangles_of_vertices() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The triangles of vertex 0, of vertex 1, ..., and where each vertex's list starts."""
    flat = canonical().triangles.ravel()
    order = np.argsort(flat, kind="stable")
    return order // 3, np.searchsorted(flat[order], np.arange(468))


def visibility(mesh: Floats, size: int) -> Floats:
    """[size, size] in the texture: `facing`, reduced to 0 where another part of the face is in front."""
    grid = uv_grid(size)
    seen = grid.spread(facing(mesh))
    local = (mesh * np.float32(_DEPTH_WIDTH / max(float(np.ptp(mesh[:, 0])), 1e-3))).astype(np.float32)
    local[:, :2] -= local[:, :2].min(0) - 2
    width, height = (np.ceil(local[:, :2].max(0)).astype(int) + 3).tolist()
    u, v, ids = triangle_ids(local, width, height)
    depth = grid.spread(local[:, 2])
    front = sample(depth, u * np.float32(size) - np.float32(0.5), v * np.float32(size) - np.float32(0.5))
    front = np.where(ids >= 0, front, _FAR)
    nearest = sample(front, grid.spread(local[:, 0]), grid.spread(local[:, 1]), cv2.INTER_NEAREST)
    hidden = smoothstep(depth - nearest, 3.0, 7.0)
    return seen * (1 - blur(hidden, 0.01 * size))

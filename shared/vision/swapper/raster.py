"""Where each pixel of a picture lies in the texture: the mesh drawn as a map.

Knows the canonical face's triangles; no texture, no colour.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.vision.canonical import canonical
from shared.vision.protocols import Floats
from shared.vision.swapper.filters import enlarge

_FIXED = 256
_FINEST = 176
"""Longest side at which triangles are drawn; the map is piecewise linear, so enlarging it loses little: 0.28 grey
levels on average at 400 px for half the time (engine.md section 5)."""
_SMALLEST_AREA = 1e-3
_FARTHEST = 0.09
"""Pixels never come from farther than this part of the width: slivers seen edge-on would tear."""


class UVMap(NamedTuple):
    """Per pixel of a region, all [height, width]."""

    u: Floats
    v: Floats
    """0..1 inside the mesh; outside, those of a neighbour near the edge, else -1."""
    covered: Floats
    """1 on the mesh, 0 beside it."""


class Shift(NamedTuple):
    """Where each pixel's content comes from, in pixels, both [height, width]."""

    x: Floats
    y: Floats


def draw(mesh: Floats, width: int, height: int, origin: Floats | None = None) -> tuple[UVMap, Shift | None]:
    """The map of a mesh [468, 3] on a region of the picture, and with `origin` (the same mesh before it was moved)
    the positions from which the moved picture is to be read.

    Cost is bounded: at most 176 pixels a side are drawn, then enlarged.
    """
    ratio = min(1.0, _FINEST / max(width, height))
    if ratio == 1.0:
        drawn = _draw(mesh, width, height)
        shift = None if origin is None else _as_positions(_shift(drawn, origin), width, height, 1.0, 1.0)
        return UVMap(drawn.u, drawn.v, (drawn.ids >= 0).astype(np.float32)), shift
    w, h = int(np.ceil(width * ratio)), int(np.ceil(height * ratio))
    fx, fy = w / width, h / height
    scale = np.array([fx, fy, (fx + fy) / 2], np.float32)
    centre = np.array([0.5 * fx - 0.5, 0.5 * fy - 0.5, 0], np.float32)
    drawn = _draw(mesh * scale + centre, w, h)
    u, v = _bleed(drawn.u, drawn.ids), _bleed(drawn.v, drawn.ids)
    covered = (drawn.ids >= 0).astype(np.float32)
    uv = UVMap(*(enlarge(x, width, height) for x in (u, v, covered)))
    if origin is None:
        return uv, None
    return uv, _as_positions(_shift(drawn, origin * scale + centre), width, height, fx, fy)


class _Drawn(NamedTuple):
    u: Floats
    v: Floats
    ids: NDArray[np.int32]
    """Triangle under each pixel, -1 outside."""
    corners: Floats
    """[898, 3, 3]"""
    areas: Floats
    """[898]: twice the signed area in pixels, tiny ones replaced."""


def _draw(mesh: Floats, width: int, height: int) -> _Drawn:
    corners = mesh[canonical().triangles]
    ids, areas = _nearest_triangles(corners, width, height)
    columns = _triangle_uv()
    u = _evaluate(_affine(corners, areas, columns[0]), ids, outside=-1)
    v = _evaluate(_affine(corners, areas, columns[1]), ids, outside=-1)
    return _Drawn(u, v, ids, corners, areas)


def triangle_ids(mesh: Floats, width: int, height: int) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """u, v and the triangle under each pixel (-1 outside), drawn at full resolution."""
    drawn = _draw(mesh, width, height)
    return drawn.u, drawn.v, drawn.ids


@cache
def _triangle_uv() -> tuple[Floats, Floats]:
    """u and v of the three corners of each triangle, [898, 3] each."""
    uv = canonical().uv[canonical().triangles]
    return np.ascontiguousarray(uv[..., 0]), np.ascontiguousarray(uv[..., 1])


def _nearest_triangles(corners: Floats, width: int, height: int) -> tuple[NDArray[np.int32], Floats]:
    """Draw far triangles first and leave out those that face away."""
    x, y, z = corners[..., 0], corners[..., 1], corners[..., 2]
    areas = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (y[:, 1] - y[:, 0]) * (x[:, 2] - x[:, 0])
    front = np.nonzero(areas > _SMALLEST_AREA)[0]
    order = front[np.argsort(-z[front].mean(1), kind="stable")]
    ids = np.full((height, width), -1, np.int32)
    polygons = np.round(corners[order, :, :2] * _FIXED).astype(np.int32)
    for index, polygon in zip(order.tolist(), polygons, strict=True):
        cv2.fillConvexPoly(ids, polygon, index, cv2.LINE_8, 8)
    return ids, np.where(np.abs(areas) < _SMALLEST_AREA, np.float32(_SMALLEST_AREA), areas)


def _affine(corners: Floats, areas: Floats, values: Floats) -> Floats:
    """[898, 3]: per triangle gx, gy, g0 so that values (at its corners, [898, 3]) = gx * x + gy * y + g0."""
    x, y = corners[..., 0], corners[..., 1]
    first, second = values[:, 1] - values[:, 0], values[:, 2] - values[:, 0]
    gx = (first * (y[:, 2] - y[:, 0]) - second * (y[:, 1] - y[:, 0])) / areas
    gy = (second * (x[:, 1] - x[:, 0]) - first * (x[:, 2] - x[:, 0])) / areas
    g0 = values[:, 0] - gx * x[:, 0] - gy * y[:, 0]
    return np.stack([gx, gy, g0], 1)


def _evaluate(affine: Floats, ids: NDArray[np.int32], outside: float) -> Floats:
    height, width = ids.shape
    table = np.vstack([affine, [[0, 0, outside]]]).astype(np.float32)  # id -1 reads the last row
    gx, gy, g0 = (np.take(np.ascontiguousarray(column), ids, mode="wrap") for column in table.T)
    xs, ys = np.arange(width, dtype=np.float32)[None], np.arange(height, dtype=np.float32)[:, None]
    return cast(Floats, gx * xs + gy * ys + g0)


def _shift(drawn: _Drawn, origin: Floats) -> Shift:
    """How far each pixel's content moved, in pixels of the drawing; 0 outside the mesh."""
    width = drawn.ids.shape[1]
    was = origin[canonical().triangles]
    moves = was[..., :2] - drawn.corners[..., :2]
    x = _evaluate(_affine(drawn.corners, drawn.areas, moves[..., 0]), drawn.ids, outside=0)
    y = _evaluate(_affine(drawn.corners, drawn.areas, moves[..., 1]), drawn.ids, outside=0)
    torn = np.hypot(x, y) > _FARTHEST * width
    x[torn] = 0
    y[torn] = 0
    kernel = (5, 5) if width > 60 else (3, 3)
    return Shift(cast(Floats, cv2.blur(x, kernel)), cast(Floats, cv2.blur(y, kernel)))


def _as_positions(shift: Shift, width: int, height: int, fx: float, fy: float) -> Shift:
    x, y = (s if s.shape == (height, width) else enlarge(s, width, height) for s in shift)
    xs, ys = np.arange(width, dtype=np.float32)[None], np.arange(height, dtype=np.float32)[:, None]
    return Shift(x / np.float32(fx) + xs, y / np.float32(fy) + ys)


def _bleed(x: Floats, ids: NDArray[np.int32]) -> Floats:
    """Give the pixels just outside the mesh a neighbour's value, so that enlarging does not mix in -1."""
    marked = np.where(ids >= 0, x, np.float32(-1e3))
    near = cv2.dilate(marked, np.ones((5, 5), np.uint8))
    return np.where(ids >= 0, x, np.where(near > -100, near, x)).astype(np.float32)

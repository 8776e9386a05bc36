"""The canonical texture square: what of it belongs to which part of a face, and how to reach it from a mesh.

Everything here depends on the size alone, is computed once per size and never changed. Lengths are in units of the
square's side. Knows the canonical face.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from shared.vision.canonical import (
    BROW_A,
    BROW_B,
    EYE_A,
    EYE_B,
    LIPS_INNER,
    LIPS_OUTER,
    NOSE_BASE,
    canonical,
)
from shared.vision.protocols import Floats
from shared.vision.swapper.filters import A, Bools, blur_mask, disc, sample, smoothstep

_FIXED = 256
"""cv2 draws at 1/256 pixel (shift 8)."""
_BRIDGE, _NOSE_FOOT, _UPPER_LIP = 168, 2, 13
_SIDE_WEIGHT = 0.62
"""The cylinder stretches the sides of the face: distances there count less."""


@dataclass(frozen=True)
class UVGrid:
    """size x size texture coordinates and regions."""

    size: int
    corners: NDArray[np.intp]
    """[3, size * size]: vertices of the triangle under each texel; outside the face those of the nearest inside."""
    weights: Floats
    """[3, size * size]: barycentric."""
    inside: Bools
    features: Bools
    """Eyes, brows, lips, nostrils: never taken for skin."""
    drawn: Bools
    """Brows, eyes and lips, tightly: what is dark in here is the face's own."""
    tinted: Floats
    """The same, soft: what has a colour of its own."""
    core: Bools
    """The same, wider: nothing in here is taken for an occluder."""
    feature: Floats
    """1 on the core, soft."""
    lenses: tuple[Bools, Bools]
    """Each eye with its brow: where sunglasses would be."""
    lips: Floats
    """1 on the lips, soft."""
    lip_shape: Bools
    """The lips and what is between them, tightly."""
    mouth_wide: Bools
    """The lips with room around them: where the teeth of a laugh may show that the mesh sees too small."""
    above_lip: Floats
    """1 from the nose to the gap of the lips, soft: what a laugh shades here reads as a moustache."""
    eye_band: Bools
    """Eyes, brows and bridge with room for a frame around them."""
    lower_face: Bools
    """From the nostrils down: what a hand over the mouth hides."""
    forehead: Floats
    """1 above the brows' lower edge, soft: where a fringe lies."""
    rim: Floats
    """Distance to the rim of the face; sides count shorter."""
    keep_eyes: Floats
    keep_mouth: Floats
    """1 where the target's own eyes and teeth stay."""
    basis: Floats
    """[size * size, 6]: 1, x, y, x^2, xy, y^2 with x, y in -1..1."""

    def spread(self, values: Floats) -> Floats:
        """Vertex values [468] to texels [size, size], linear in each triangle."""
        w, c = self.weights, self.corners
        texels = w[0] * values[c[0]] + w[1] * values[c[1]] + w[2] * values[c[2]]
        return cast(Floats, texels.reshape(self.size, self.size))

    def unwrap(self, image: A, mesh: Floats, interpolation: int = cv2.INTER_LINEAR) -> A:
        """The picture under the mesh as a texture [size, size, channels]."""
        return sample(image, self.spread(mesh[:, 0]), self.spread(mesh[:, 1]), interpolation)


@lru_cache(maxsize=8)
def uv_grid(size: int) -> UVGrid:
    """The grid of one size. (A race builds it twice, equally.)"""
    ids = _triangle_under_texel(size)
    inside = ids >= 0
    corners, weights = _barycentric(ids)
    brows, lips = _region(size, BROW_A, BROW_B, grow=0.012), _region(size, LIPS_OUTER, grow=0.012)
    features = _region(size, EYE_A, EYE_B, grow=0.022) | brows | lips | _region(size, NOSE_BASE)
    drawn = _region(size, BROW_A, BROW_B, LIPS_OUTER) | _region(size, EYE_A, EYE_B, grow=0.03)
    core = (
        _region(size, EYE_A, EYE_B, grow=0.03)
        | _region(size, BROW_A, BROW_B, grow=0.02)
        | _region(size, LIPS_OUTER, grow=0.03)
        | _region(size, NOSE_BASE, grow=0.01)
    )
    return UVGrid(
        size=size,
        corners=corners,
        weights=weights,
        inside=inside,
        features=features,
        drawn=drawn,
        tinted=blur_mask(drawn, 0.012 * size),
        core=core,
        feature=blur_mask(core, 0.012 * size),
        lenses=(_region(size, EYE_A, BROW_A, grow=0.03), _region(size, EYE_B, BROW_B, grow=0.03)),
        lips=blur_mask(lips, 0.01 * size),
        lip_shape=_region(size, LIPS_OUTER),
        mouth_wide=_region(size, LIPS_OUTER, grow=0.05),
        above_lip=_above_lip(size),
        eye_band=_eye_band(size),
        lower_face=_rows(size) > canonical().uv[_NOSE_FOOT, 1] - 0.03,
        forehead=_forehead(size),
        rim=_rim_distance(inside),
        keep_eyes=blur_mask(_region(size, EYE_A, EYE_B), 0.004 * size),
        keep_mouth=blur_mask(_region(size, LIPS_INNER), 0.004 * size),
        basis=_quadratic_basis(size),
    )


def _pixels(size: int) -> Floats:
    return canonical().uv * np.float32(size) - np.float32(0.5)


def _triangle_under_texel(size: int) -> NDArray[np.int32]:
    ids = np.full((size, size), -1, np.int32)
    polygons = np.round(_pixels(size)[canonical().triangles] * _FIXED).astype(np.int32)
    for index, polygon in enumerate(polygons):
        cv2.fillConvexPoly(ids, polygon, index, cv2.LINE_8, 8)
    return ids


def _barycentric(ids: NDArray[np.int32]) -> tuple[NDArray[np.intp], Floats]:
    ys, xs = np.nonzero(ids >= 0)
    triangles = canonical().triangles[ids[ys, xs]]
    a, b, c = (_pixels(len(ids))[triangles[:, k]] for k in range(3))
    q = np.stack([xs, ys], 1)
    area = _cross(b - a, c - a)
    wa, wb = _cross(b - q, c - q) / area, _cross(c - q, a - q) / area
    weights = np.stack([wa, wb, 1 - wa - wb]).astype(np.float32)
    nearest = _nearest_inside(ids >= 0)
    corners = np.ascontiguousarray(triangles.T[:, nearest], np.intp)
    return corners, np.ascontiguousarray(weights[:, nearest])


def _nearest_inside(inside: Bools) -> NDArray[np.int64]:
    """[texels]: which of the inside texels, in raster order, is nearest to each texel."""
    outside = (~inside).astype(np.uint8)
    _, labels = cv2.distanceTransformWithLabels(outside, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)
    order = np.zeros(int(labels.max()) + 1, np.int64)
    order[labels[inside]] = np.arange(int(inside.sum()))
    return cast(NDArray[np.int64], order[labels.ravel()])


def _cross(u: Floats, v: Floats) -> Floats:
    return cast(Floats, u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])


def _region(size: int, *loops: list[int], grow: float = 0.0) -> Bools:
    """The union of the loops, each grown on the part of the square that it can reach: a tenth of it."""
    mask = np.zeros((size, size), np.uint8)
    pixels, radius = _pixels(size), round(grow * size)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1,) * 2)
    for loop in loops:
        drawn = np.zeros_like(mask)
        cv2.fillPoly(drawn, [np.round(pixels[loop] * _FIXED).astype(np.int32)], 255, cv2.LINE_8, 8)
        x, y, width, height = cv2.boundingRect(drawn)
        part = np.s_[max(0, y - radius) : y + height + radius, max(0, x - radius) : x + width + radius]
        mask[part] = np.maximum(mask[part], cv2.dilate(drawn[part], kernel) if radius else drawn[part])
    return mask > 0


def _rows(size: int) -> Floats:
    """[size, size]: v of each texel."""
    rows = (np.arange(size, dtype=np.float32) + np.float32(0.5)) / np.float32(size)
    return np.repeat(rows[:, None], size, axis=1)


def _forehead(size: int) -> Floats:
    edge = float(canonical().uv[BROW_A + BROW_B, 1].max())
    return smoothstep(_rows(size), edge + 0.03, edge - 0.03)


def _above_lip(size: int) -> Floats:
    v = canonical().uv[:, 1]
    rows = _rows(size)
    band = (rows > v[_NOSE_FOOT] + 0.005) & (rows < v[_UPPER_LIP])
    return blur_mask(_region(size, LIPS_OUTER, grow=0.07) & band, 0.01 * size)


def _bridge_columns(size: int) -> slice:
    x = float(canonical().uv[_BRIDGE, 0]) * size
    return slice(int(x - 0.035 * size), int(x + 0.035 * size) + 2)


def _eye_band(size: int) -> Bools:
    lenses = _region(size, EYE_A, BROW_A, EYE_B, BROW_B, grow=0.075)
    rows = np.nonzero(lenses.any(1))[0]
    between = np.zeros_like(lenses)
    between[rows[0] : rows[-1] + 1, _bridge_columns(size)] = True
    return cv2.morphologyEx((lenses | between).astype(np.uint8), cv2.MORPH_CLOSE, disc(0.08 * size)) > 0


def _rim_distance(inside: Bools) -> Floats:
    size = len(inside)
    narrow = max(8, int(size * _SIDE_WEIGHT))
    squeezed = cv2.resize(inside.astype(np.uint8), (narrow, size), interpolation=cv2.INTER_NEAREST)
    distance = cv2.distanceTransform(squeezed, cv2.DIST_L2, 5) / np.float32(size)
    return cast(Floats, cv2.resize(distance, (size, size)))


def _quadratic_basis(size: int) -> Floats:
    y, x = np.mgrid[0:size, 0:size].astype(np.float32) / size * 2 - 1
    return np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], -1).reshape(-1, 6)


def rim_feather(grid: UVGrid) -> Floats:
    """Opacity that ends softly before the rim of the face."""
    return smoothstep(grid.rim, 0.02, 0.09)

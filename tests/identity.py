"""Who a face looks like: distances between dlib's 128 numbers per face.

dlib's network and five-point predictor (both CC0) are fetched like a model of the product, by the catalogue in
tests/data/identity. The predictor gets its box from our mesh, so that no second detector decides.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import cv2
import dlib
import numpy as np

from shared.models import catalog
from shared.models.cache import ModelCache
from shared.vision.canonical import BROW_A, BROW_B
from shared.vision.protocols import Floats, Image

CATALOG = Path(__file__).parent / "data" / "identity" / "catalog.toml"
SAME_PERSON = 0.6
"""dlib's own threshold."""
_VIEW, _CHIP, _PADDING = 400, 150, 0.25
_CHIN, _OUTER_EYES, _SIDES = 152, (33, 263), (234, 454)


class IdentityMeter:
    def __init__(self, models: ModelCache) -> None:
        files = models.ensure(catalog.load(CATALOG).samples["dlib"])
        self._network = dlib.face_recognition_model_v1(str(files["network"]))
        self._points = dlib.shape_predictor(str(files["points"]))

    def embed(self, image: Image, mesh: Floats, views: int = 10) -> Floats:
        """[128] of the face under `mesh` [468, 3]: the mean over slightly different views, always the same ones.

        dlib's own jitter does the same with views that depend on what was measured before.
        """
        chip = self._aligned(image, mesh)
        chips = [cv2.warpAffine(chip, m, (_CHIP, _CHIP), borderMode=cv2.BORDER_REPLICATE) for m in _views(views)]
        return np.mean([np.array(v, np.float32) for v in self._network.compute_face_descriptor(chips, 0)], axis=0)

    def _aligned(self, image: Image, mesh: Floats) -> Image:
        """RGB [150, 150, 3] as the network was trained on, from an upright view of fixed size."""
        matrix = _upright(mesh)
        view = cv2.warpAffine(image, matrix, (_VIEW, _VIEW), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
        seen = mesh[:, :2] @ matrix[:, :2].T + matrix[:, 2]
        top, bottom = seen[BROW_A + BROW_B, 1].min(), seen[_CHIN, 1]
        middle, half = seen[list(_SIDES), 0].mean(), (bottom - top) / 2
        box = dlib.rectangle(int(middle - half), int(top), int(middle + half), int(bottom))
        rgb = np.ascontiguousarray(view[..., ::-1])
        return np.asarray(dlib.get_face_chip(rgb, self._points(rgb, box), _CHIP, _PADDING))


def distance(a: Floats, b: Floats) -> float:
    return float(np.linalg.norm(a - b))


def _upright(mesh: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    points = mesh[:, :2].astype(np.float64)
    centre, side = (points.min(0) + points.max(0)) / 2, np.ptp(points, axis=0).max() * 2.2
    along = points[_OUTER_EYES[1]] - points[_OUTER_EYES[0]]
    turn = np.arctan2(along[1], along[0])
    c, s = np.cos(turn) * _VIEW / side, np.sin(turn) * _VIEW / side
    x, y = _VIEW / 2 - c * centre[0] - s * centre[1], _VIEW / 2 + s * centre[0] - c * centre[1]
    return np.array([[c, s, x], [-s, c, y]])


@cache
def _views(count: int) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """The spread of dlib's jitter: 3 degrees, 3 % of size, 2 % of place, every other one mirrored."""
    random, views = np.random.default_rng(0), []
    for index in range(count):
        turn, size = np.radians(random.uniform(-3, 3)), random.uniform(0.97, 1.0)
        c, s = np.cos(turn) / size, np.sin(turn) / size
        matrix = np.array([[c, -s, 0], [s, c, 0]])
        if index % 2:
            matrix[:, 0] *= -1
        middle = np.full(2, (_CHIP - 1) / 2)
        matrix[:, 2] = middle - matrix[:, :2] @ middle + random.uniform(-0.02, 0.02, 2) * _CHIP
        views.append(matrix)
    return views

"""CenterFace: counts, scores, sizes."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from shared.vision.detector.centerface import CenterFace, _Maps, decode
from shared.vision.geometry import five_points
from shared.vision.protocols import Image

from .conftest import Portrait


@pytest.mark.parametrize(
    ("name", "count", "size"), [("t1", 6, 320), ("t1", 6, 640), ("t1", 6, 1280), ("astronaut", 1, 320)]
)
def test_all_faces_and_no_others(
    detector: CenterFace, picture: Callable[[str], Image], name: str, count: int, size: int
) -> None:
    assert len(detector.detect(picture(name), size=size)) == count


def test_t1_has_no_false_hit_down_to_a_score_of_0_2(detector: CenterFace, picture: Callable[[str], Image]) -> None:
    assert len(detector.detect(picture("t1"), threshold=0.2)) == 6


def test_13_pixel_faces_are_found_because_small_pictures_are_enlarged(
    detector: CenterFace, picture: Callable[[str], Image]
) -> None:
    small = cv2.resize(picture("t1"), None, fx=0.125, fy=0.125, interpolation=cv2.INTER_AREA)
    assert len(detector.detect(small)) == 6


def test_points_lie_within_a_quarter_eye_distance_of_the_mesh(
    detector: CenterFace, portrait: Callable[[str], Portrait]
) -> None:
    astronaut = portrait("astronaut")
    (found,) = detector.detect(astronaut.image)
    truth = five_points(astronaut.faces[0].mesh)
    error = np.linalg.norm(found.points - truth, axis=1).mean() / np.linalg.norm(truth[0] - truth[1])
    assert error < 0.15


def test_boxes_stay_inside_the_picture(detector: CenterFace, picture: Callable[[str], Image]) -> None:
    image = picture("astronaut")[90:, 200:]
    for found in detector.detect(image, threshold=0.2):
        assert (found.box[:2] >= 0).all()
        assert (found.box[2:] <= [image.shape[1], image.shape[0]]).all()


@pytest.mark.parametrize("shape", [(1, 1), (3, 2000), (2000, 3), (31, 33)])
def test_any_shape_is_looked_at(detector: CenterFace, shape: tuple[int, int]) -> None:
    assert detector.detect(np.zeros((*shape, 3), np.uint8), size=320) == []


def test_decode_by_hand() -> None:
    """One hot cell at row 2, column 3, offset a quarter cell down and half a cell right, box 8 high and 4 wide."""
    maps = _Maps(*(np.zeros(shape, np.float32) for shape in ((6, 6), (2, 6, 6), (2, 6, 6), (10, 6, 6))))
    maps.heat[2, 3] = 0.9
    maps.size[:, 2, 3] = np.log(2), np.log(1)
    maps.offset[:, 2, 3] = 0.25, 0.5
    maps.points[:, 2, 3] = [0.5, 0.25] * 5
    boxes, points, scores = decode(maps, 0.5)
    assert scores.tolist() == pytest.approx([0.9])
    assert boxes[0].tolist() == pytest.approx([14, 7, 18, 15])
    assert points[0, 0].tolist() == pytest.approx([15, 11])


def test_decode_of_nothing() -> None:
    boxes, points, scores = decode(
        _Maps(*(np.zeros((n, 4, 4), np.float32) for n in (1, 2, 2, 10)))._replace(heat=np.zeros((4, 4), np.float32)),
        0.5,
    )
    assert boxes.shape == (0, 4)
    assert points.shape == (0, 5, 2)
    assert scores.shape == (0,)

"""The dense mesh: refinement, mirror images, turned and large faces."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from shared.vision.canonical import canonical
from shared.vision.geometry import Region, five_points
from shared.vision.landmarker.face_mesh import FaceMesh, crop_region
from shared.vision.protocols import Image

from .conftest import Portrait


def error(mesh: np.ndarray, truth: np.ndarray) -> float:
    """Mean distance over all vertices, in distances between the outer eye corners."""
    distance = np.linalg.norm(mesh[:, :2] - truth[:, :2], axis=1).mean()
    return float(distance / np.linalg.norm(truth[33, :2] - truth[263, :2]))


def test_the_flag_tells_a_face_from_a_wall(
    landmarker: FaceMesh, portrait: Callable[[str], Portrait], picture: Callable[[str], Image]
) -> None:
    points = five_points(portrait("astronaut").faces[0].mesh)
    (face,) = landmarker.locate(portrait("astronaut").image, [points])
    (wall,) = landmarker.locate(picture("no_face.png"), [points])
    assert face.score > 0.99
    assert wall.score < 0.1


def test_meshes_come_in_the_order_of_the_points(landmarker: FaceMesh, portrait: Callable[[str], Portrait]) -> None:
    t1 = portrait("t1")
    points = [five_points(face.mesh) for face in t1.faces]
    forward = landmarker.locate(t1.image, points)
    backward = landmarker.locate(t1.image, points[::-1])
    for a, b in zip(forward, backward[::-1], strict=True):
        assert np.array_equal(a.mesh, b.mesh)


def test_a_mirrored_picture_gives_the_mirrored_mesh(landmarker: FaceMesh, portrait: Callable[[str], Portrait]) -> None:
    astronaut = portrait("astronaut")
    mesh, width = astronaut.faces[0].mesh, astronaut.image.shape[1]
    mirrored = np.ascontiguousarray(astronaut.image[:, ::-1])
    points = five_points(mesh)[[1, 0, 2, 4, 3]] * np.float32([-1, 1]) + np.float32([width - 1, 0])
    (found,) = landmarker.locate(mirrored, [points])
    expected = mesh[canonical().pair] * np.float32([-1, 1, 1]) + np.float32([width - 1, 0, 0])
    assert error(found.mesh, expected) < 0.02


def test_a_third_pass_hardly_moves_the_mesh(landmarker: FaceMesh, portrait: Callable[[str], Portrait]) -> None:
    astronaut = portrait("astronaut")
    points = five_points(astronaut.faces[0].mesh)
    one, two, three = (landmarker.locate(astronaut.image, [points], passes=n)[0].mesh for n in (1, 2, 3))
    assert error(two, three) < 0.02
    assert error(one, two) > 0


@pytest.mark.parametrize("scale", [2, 4.3, 9])
def test_a_large_face_gives_the_mesh_of_the_small_one(
    landmarker: FaceMesh, portrait: Callable[[str], Portrait], scale: float
) -> None:
    astronaut = portrait("astronaut")
    part, mesh = astronaut.image[20:220, 130:330], astronaut.faces[0].mesh - np.float32([130, 20, 0])
    large = cv2.resize(part, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    truth = mesh * np.float32(scale) + np.float32(scale / 2 - 0.5)
    (found,) = landmarker.locate(large, [five_points(truth)])
    assert error(found.mesh, truth) < 0.02


@pytest.mark.parametrize("angle", [0.0, 0.4, 2.0])
@pytest.mark.parametrize("side", [100.0, 300.0, 410.0, 900.0])
def test_a_crop_of_a_ramp_keeps_its_place(side: float, angle: float) -> None:
    """Averaging first must not move anything: on a linear ramp a crop's values are known exactly."""
    ys, xs = np.mgrid[0:700, 0:900]
    ramp = np.stack([xs / 5, ys / 5, xs * 0], -1).round().astype(np.uint8)
    region = Region(450.0, 350.0, side, angle)
    crop = crop_region(ramp, region, 192).astype(float)
    back = cv2.invertAffineTransform(region.matrix(192))
    for x, y in ((96, 96), (60, 130), (140, 100)):
        expected = back @ [x, y, 1]
        assert crop[y, x, 0] == pytest.approx(expected[0] / 5, abs=1.2)
        assert crop[y, x, 1] == pytest.approx(expected[1] / 5, abs=1.2)


@pytest.mark.parametrize("centre", [(-5000.0, 10.0), (0.0, 0.0), (320.0, 9000.0)])
def test_a_region_outside_the_picture_repeats_its_edge(centre: tuple[float, float]) -> None:
    image = np.full((240, 320, 3), 77, np.uint8)
    assert (crop_region(image, Region(*centre, 800.0, 0.7), 192) == 77).all()

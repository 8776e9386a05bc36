"""Pose, fit and the canonical face's own consistency."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shared.imaging.geometry import fit_similarity
from shared.vision.canonical import OVAL, canonical
from shared.vision.geometry import five_points, pose_of, region_from_mesh, region_from_points
from shared.vision.swapper.uv import uv_grid


def head(yaw: float = 0, roll: float = 0) -> np.ndarray:
    """The mean face turned (degrees) and moved to a picture."""
    y, r = math.radians(yaw), math.radians(roll)
    turn = np.array([[math.cos(y), 0, -math.sin(y)], [0, 1, 0], [math.sin(y), 0, math.cos(y)]])
    tilt = np.array([[math.cos(r), -math.sin(r), 0], [math.sin(r), math.cos(r), 0], [0, 0, 1]])
    return (canonical().mean @ (tilt @ turn).T * 70 + [300, 200, 5]).astype(np.float32)


@pytest.mark.parametrize("yaw", [-60, -20, 0, 35])
@pytest.mark.parametrize("roll", [-170, -90, 0, 45, 120])
def test_pose_is_measured_in_the_faces_own_frame(yaw: float, roll: float) -> None:
    pose = pose_of(head(yaw, roll))
    assert pose.yaw == pytest.approx(yaw, abs=0.1)
    assert pose.roll == pytest.approx(roll, abs=0.1)
    assert pose.misfit < 1e-4


def test_looking_to_the_viewers_right_is_positive() -> None:
    mesh = head(yaw=30)
    assert mesh[1, 0] > mesh[[234, 454], 0].mean()  # the nose tip, right of the middle of the cheeks


def test_a_mirrored_mesh_is_a_misfit_only_when_asymmetric() -> None:
    mesh = head()
    assert pose_of(mesh[canonical().pair] * np.float32([-1, 1, 1])).misfit < 1e-4
    squeezed = mesh * np.float32([0.6, 1, 1])
    assert pose_of(squeezed).misfit > 0.1


def test_similarity_is_recovered() -> None:
    mesh = head(20, 30)
    fit = fit_similarity(canonical().mean, mesh)
    assert fit.scale == pytest.approx(70, rel=1e-4)
    assert fit.translation == pytest.approx([300, 200, 5], abs=1e-2)


def test_similarity_never_mirrors() -> None:
    points = np.random.default_rng(1).normal(size=(20, 3)).astype(np.float32)
    assert np.linalg.det(fit_similarity(points, points * np.float32([-1, 1, 1])).rotation) == pytest.approx(1)


def test_crop_regions_follow_the_face() -> None:
    mesh = head(roll=25)
    for region in (region_from_mesh(mesh), region_from_points(five_points(mesh))):
        assert math.degrees(region.angle) == pytest.approx(25, abs=4)
        corners = mesh[:, :2] @ region.matrix(192)[:, :2].T + region.matrix(192)[:, 2]
        assert corners.min() > 0
        assert corners.max() < 192


def test_points_on_one_spot_give_some_region() -> None:
    assert region_from_points(np.zeros((5, 2), np.float32)).side >= 1


def test_canonical_tables() -> None:
    face = canonical()
    assert (face.pair[face.pair] == np.arange(468)).all()
    assert int((face.pair == np.arange(468)).sum()) == 28
    assert np.allclose(face.mean[face.pair] * [-1, 1, 1], face.mean, atol=2e-5)
    assert np.linalg.norm(face.mean[33] - face.mean[263]) == pytest.approx(1, abs=0.02)
    assert face.triangles.shape == (898, 3)
    assert sorted(set(face.triangles.ravel().tolist())) == list(range(468))
    a, b, c = (face.uv[face.triangles[:, k]] for k in range(3))
    areas = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    assert (areas > 0).all()


def test_the_texture_square_reproduces_its_own_coordinates() -> None:
    grid, uv = uv_grid(128), canonical().uv
    ys, xs = np.nonzero(grid.inside)
    assert np.allclose(grid.spread(uv[:, 0])[ys, xs], (xs + 0.5) / 128, atol=1e-4)
    assert np.allclose(grid.spread(uv[:, 1])[ys, xs], (ys + 0.5) / 128, atol=1e-4)
    assert grid.inside[64, 64]
    assert uv[OVAL].min() > 0

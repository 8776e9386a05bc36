"""Fits against known motions, boxes against pixels."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from shared.imaging.geometry import fit_similarity, invert, outline, region, similarity

CHANCE = np.random.default_rng(7)


def rotation(dimensions: int) -> np.ndarray:
    q, _ = np.linalg.qr(CHANCE.normal(size=(dimensions, dimensions)))
    q[:, 0] *= np.linalg.det(q)
    return q


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_known_motion_is_found(dimensions: int) -> None:
    points, turn, shift = (
        CHANCE.normal(size=(12, dimensions)) * 40,
        rotation(dimensions),
        CHANCE.normal(size=dimensions),
    )
    fit = similarity(points, 1.7 * points @ turn.T + shift)
    assert fit.dtype == np.float64
    assert fit.shape == (dimensions, dimensions + 1)
    assert np.allclose(fit, np.column_stack([1.7 * turn, shift]), atol=1e-4)


def test_the_fit_and_its_matrix_say_the_same() -> None:
    points = CHANCE.normal(size=(8, 3)) * 20
    fit = fit_similarity(points, 0.4 * points @ rotation(3).T + 5)
    assert fit.scale == pytest.approx(0.4)
    assert np.allclose(fit.apply(points), points @ fit.matrix[:, :3].T + fit.matrix[:, 3])


def test_the_way_back() -> None:
    there = similarity(CHANCE.normal(size=(5, 2)), CHANCE.normal(size=(5, 2)))
    back = invert(there)
    at = np.array([3.0, -7.0])
    assert np.allclose(back[:, :2] @ (there[:, :2] @ at + there[:, 2]) + back[:, 2], at)
    with pytest.raises(np.linalg.LinAlgError):
        invert(np.zeros((2, 3)))


def test_an_outline_by_hand() -> None:
    """A quarter turn and twice the size: the pixel at 3, 1 comes to -2, 6; one pixel wider all round: -4, 8."""
    quarter = np.array([[0, -2, 0], [2, 0, 0]], np.float64)
    assert outline(4, 2, quarter).tolist() == [[0, 0], [0, 6], [-2, 6], [-2, 0]]
    assert outline(4, 2, quarter, 1).tolist() == [[2, -2], [2, 8], [-4, 8], [-4, -2]]


def test_opencv_takes_the_matrix() -> None:
    src, dst = np.array([[10, 10], [30, 10], [20, 30]]), np.array([[12, 14], [52, 14], [32, 54]])
    fit = similarity(src, dst)
    assert np.allclose(cv2.transform(src[None].astype(np.float32), fit)[0], dst, atol=1e-4)


def test_a_mirror_image_is_never_the_answer() -> None:
    points = CHANCE.normal(size=(9, 2))
    fit = similarity(points, points * [-1, 1])
    assert np.linalg.det(fit[:, :2]) > 0


def test_the_fit_is_the_least_squares_one() -> None:
    src = CHANCE.normal(size=(20, 2)) * 10
    dst = src @ rotation(2).T + CHANCE.normal(size=(20, 2))
    fit = similarity(src, dst)

    def cost(matrix: np.ndarray) -> float:
        return float(((src @ matrix[:, :2].T + matrix[:, 2] - dst) ** 2).sum())

    a, b = fit[0, 0], fit[1, 0]
    for da, db, shift in ((0.01, 0, 0), (-0.01, 0, 0), (0, 0.01, 0), (0, -0.01, 0), (0, 0, 0.05), (0, 0, -0.05)):
        moved = np.array([[a + da, -b - db, fit[0, 2] + shift], [b + db, a + da, fit[1, 2] + shift]])
        assert cost(moved) > cost(fit)


def test_points_in_one_place() -> None:
    fit = similarity(np.ones((4, 2)), np.full((4, 2), 5.0))
    assert np.allclose(fit, [[0, 0, 5], [0, 0, 5]])


@pytest.mark.parametrize(
    ("points", "pad", "box"),
    [
        ([[10.2, 20.7], [30.1, 40.0]], 0, (10, 20, 31, 40)),
        ([[10.2, 20.7, 5], [30.1, 40.0, -5]], 3, (7, 17, 34, 43)),
        ([[-35, 30], [40, 150]], 0, (0, 30, 40, 100)),
        ([[190, 90], [250, 300]], 2, (188, 88, 200, 100)),
    ],
)
def test_region(points: list[list[float]], pad: float, box: tuple[int, int, int, int]) -> None:
    assert region(points, (100, 200, 3), pad) == box


@pytest.mark.parametrize("points", [[[-50, -50], [-20, -10]], [[300, 10], [400, 20]], [[10, 500], [20, 600]]])
def test_region_outside_is_empty(points: list[list[float]]) -> None:
    x0, y0, x1, y1 = region(points, (100, 200), 2)
    assert 0 <= x0 <= x1 <= 200
    assert 0 <= y0 <= y1 <= 100
    assert (x1 - x0) * (y1 - y0) == 0

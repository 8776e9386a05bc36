"""Alignment against its templates and insightface's own, crops against a supersampled reference."""

from __future__ import annotations

import warnings

import cv2
import numpy as np
import pytest

from shared.errors import ModelInvalidError
from shared.imaging.canvas import Still
from shared.imaging.geometry import invert
from shared.vision.crops import align, alignment
from shared.vision.templates import TEMPLATES, template

CHANCE = np.random.default_rng(17)


def noise(height: int, width: int) -> np.ndarray:
    return CHANCE.integers(0, 256, (height, width, 3), np.uint8)


def points(size: float, x: float, y: float, degrees: float = 0.0, name: str = "arcface_128") -> np.ndarray:
    """Five points of a face whose crop lies `size` pixels wide round x, y."""
    turn = np.deg2rad(degrees)
    turned = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return ((TEMPLATES[name] - 0.5) * size @ turned + (x, y)).astype(np.float32)


def checkerboard(height: int, width: int) -> np.ndarray:
    return np.dstack([(np.indices((height, width)).sum(axis=0) % 2 * 255).astype(np.uint8)] * 3)


def supersampled(frame: np.ndarray, matrix: np.ndarray, size: int, density: int = 16) -> np.ndarray:
    """The mean of density x density bilinear samples in each pixel of the crop."""
    back = invert(matrix)
    dense = np.column_stack([back[:, :2] / density, back[:, 2] - back[:, :2].sum(axis=1) * (density - 1) / 2 / density])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    fine = cv2.warpAffine(frame, dense, (size * density, size * density), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return cv2.resize(fine.astype(np.float32), (size, size), interpolation=cv2.INTER_AREA)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
@pytest.mark.parametrize("size", [112, 256, 512])
def test_the_points_land_on_the_template(name: str, size: int) -> None:
    matrix = align(Still(noise(400, 500)), points(137.5, 260, 190, 40, name), name, size).matrix
    at = points(137.5, 260, 190, 40, name) @ matrix[:, :2].T + matrix[:, 2]
    assert np.allclose(at, TEMPLATES[name] * size, atol=1e-3)
    assert matrix.dtype == np.float64
    assert np.linalg.det(matrix[:, :2]) == pytest.approx((size / 137.5) ** 2, rel=1e-4)


def test_templates_are_faces_and_nobody_can_change_them() -> None:
    assert len(TEMPLATES) == 7
    for at in TEMPLATES.values():
        left_eye, right_eye, nose, left_mouth, right_mouth = at
        assert left_eye[0] < left_mouth[0] < nose[0] < right_mouth[0] < right_eye[0]
        assert max(left_eye[1], right_eye[1]) < nose[1] < min(left_mouth[1], right_mouth[1])
        with pytest.raises(ValueError, match="read-only"):
            at[0, 0] = 0
    with pytest.raises(ModelInvalidError, match="arcface_13"):
        template("arcface_13")


def test_arcface_128_is_insightfaces_template_moved_8_pixels() -> None:
    moved = TEMPLATES["arcface_112_v2"] * 112 + (8, 0)
    assert np.allclose(TEMPLATES["arcface_128"] * 128, moved, atol=1e-4)


@pytest.mark.parametrize("size", [40, 100, 300, 900])
@pytest.mark.parametrize("degrees", [0, 25, -70])
def test_exact_is_insightfaces_own_crop(size: float, degrees: float) -> None:
    from insightface.utils.face_align import norm_crop2

    frame = cv2.resize(noise(60, 80), (1280, 960), interpolation=cv2.INTER_CUBIC)
    at = points(size, 640.3, 480.6, degrees) + CHANCE.normal(0, size / 60, (5, 2)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # its call of scikit-image
        theirs, matrix = norm_crop2(frame, at, 128)
    ours = align(Still(frame), at, "arcface_128", 128, exact=True)
    assert np.allclose(ours.matrix, matrix, atol=1e-3)
    assert np.abs(ours.pixels.astype(int) - theirs).max() <= 1


@pytest.mark.parametrize("size", [512, 530.5, 800])
@pytest.mark.parametrize("degrees", [0, 20, 45])
def test_a_checkerboard_four_times_larger_does_not_alias(size: float, degrees: float) -> None:
    """Bilinear sampling makes waves of black and white of it; seen from far it is grey."""
    frame = checkerboard(1200, 1200)
    at = points(size, 600.2, 600.7, degrees)
    crop = align(Still(frame), at, "arcface_128", 128)
    want = supersampled(frame, crop.matrix, 128)
    naive = align(Still(frame), at, "arcface_128", 128, exact=True).pixels
    assert np.abs(crop.pixels - want).max() < 12
    assert np.abs(naive - want).max() > 25


@pytest.mark.parametrize("size", [141, 180, 250, 380, 640, 1500])
def test_shrunk_crops_are_the_mean_of_what_they_cover(size: float) -> None:
    frame = cv2.resize(noise(200, 300), (1800, 1200), interpolation=cv2.INTER_LINEAR)
    crop = align(Still(frame), points(size, 900.4, 600.2, 15), "arcface_128", 128)
    want = supersampled(frame, crop.matrix, 128)
    naive = align(Still(frame), points(size, 900.4, 600.2, 15), "arcface_128", 128, exact=True).pixels
    assert np.abs(crop.pixels - want).mean() < 0.25 * np.abs(naive - want).mean() + 0.5
    assert abs(float((crop.pixels - want).mean())) < (0.05 if size <= 512 else 0.2)


def test_small_faces_are_enlarged_by_plain_interpolation() -> None:
    frame = noise(300, 300)
    crop = align(Still(frame), points(100, 150, 150, 5), "arcface_128", 128)
    want = cv2.warpAffine(frame, crop.matrix, (128, 128), borderMode=cv2.BORDER_REPLICATE)
    assert np.abs(crop.pixels.astype(int) - want).max() <= 1


@pytest.mark.parametrize("size", [90, 700])
@pytest.mark.parametrize(("x", "y"), [(0, 0), (10, 390), (495, 200), (-300, 100), (250, 900)])
def test_beyond_the_frame_its_edge_repeats(x: float, y: float, size: float) -> None:
    frame = cv2.resize(noise(40, 50), (500, 400), interpolation=cv2.INTER_CUBIC)
    wide = cv2.copyMakeBorder(frame, 1000, 1000, 1000, 1000, cv2.BORDER_REPLICATE)
    at = points(size, x, y, 10)
    cut, whole = align(Still(frame), at, "ffhq_512", 256), align(Still(wide), at + np.float32(1000), "ffhq_512", 256)
    assert np.abs(cut.pixels.astype(int) - whole.pixels).mean() < 1


def test_the_cost_does_not_follow_the_frame() -> None:
    """The crop of a face in a large frame is that of the same pixels in a small one."""
    large = noise(2160, 3840)
    at = points(600, 1920, 1080, 8)
    small = large[580:1580, 1420:2420]
    ours = align(Still(large), at, "arcface_128", 128).pixels
    assert (
        np.abs(ours.astype(int) - align(Still(small), at - np.float32([1420, 580]), "arcface_128", 128).pixels).max()
        <= 2
    )


def test_a_frame_is_not_written_and_may_be_read_only() -> None:
    frame = noise(200, 200)
    frame.setflags(write=False)
    crop = align(Still(frame), points(80, 100, 100), "arcface_128", 128)
    assert crop.pixels.flags.writeable
    assert crop.pixels.flags.c_contiguous


def test_points_on_one_spot_are_told() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        align(Still(noise(50, 50)), np.ones((5, 2), np.float32), "arcface_128", 128)


def test_boost_moves_the_template_by_the_half_pixel_term() -> None:
    """ReSwapper's note, by hand: side R on a network of 128 is R / 256 - 0.5 pixels."""
    at = points(128, 64, 64)
    for side in (256, 512, 1024):
        plain, boosted = alignment(at, "arcface_128", side), alignment(at, "arcface_128", side, native=128)
        assert np.allclose(boosted[:, 2] - plain[:, 2], side / 256 - 0.5)
        assert np.allclose(boosted[:, :2], plain[:, :2])

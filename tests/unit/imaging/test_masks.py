"""Masks against numbers by hand and against the long way through OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from shared.imaging.masks import box_mask, feather, join

CHANCE = np.random.default_rng(11)


def test_the_box_by_hand() -> None:
    """256 at 0.3: amount 38, border 19, sigma 9.5, so half way at the border and whole from 38 pixels inwards."""
    mask = box_mask(256, 0.3)
    assert mask.shape == (256, 256)
    assert mask.dtype == np.float32
    assert np.abs(mask[38:218, 38:218] - 1).max() < 1e-6
    assert mask[37, 128] < 1
    assert (mask[18, 128] + mask[19, 128]) / 2 == pytest.approx(0.5, abs=1e-3)
    # one sigma (9.5 pixels) either side of the step: the normal distribution's 0.159 and 0.841, cut at two sigma
    assert (mask[9, 128], mask[28, 128]) == (pytest.approx(0.1587, abs=0.02), pytest.approx(0.8413, abs=0.02))
    assert mask[0, 128] < 0.01
    assert np.array_equal(mask, mask.T)
    assert np.array_equal(mask, mask[::-1, ::-1])


@pytest.mark.parametrize("size", [100, 128, 400])
@pytest.mark.parametrize("blur", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("padding", [(0.0, 0.0, 0.0, 0.0), (0.1, 0.0, 0.25, 0.05)])
def test_the_box_is_a_gaussian_of_a_rectangle(
    size: int, blur: float, padding: tuple[float, float, float, float]
) -> None:
    amount = int(size * 0.5 * blur)
    top, right, bottom, left = (max(amount // 2, int(size * part)) for part in padding)
    want = np.zeros((size, size), np.float64)
    want[top : size - bottom, left : size - right] = 1
    kernel = 2 * (amount // 2) + 1
    want = cv2.GaussianBlur(want, (kernel, kernel), amount / 4, borderType=cv2.BORDER_CONSTANT)
    assert np.abs(box_mask(size, blur, padding) - want).max() < 1e-5


def test_the_feather_is_a_part_of_the_crop() -> None:
    small, large = box_mask(128, 0.5), box_mask(1024, 0.5)
    reduced = cv2.resize(large, (128, 128), interpolation=cv2.INTER_AREA)
    assert np.abs(reduced - small).max() < 0.03


def test_without_blur_the_box_is_hard() -> None:
    assert (box_mask(64, 0.0) == 1).all()
    hard = box_mask(100, 0.0, (0.1, 0.2, 0.3, 0.4))
    assert (hard[10:70, 40:80] == 1).all()
    assert hard.sum() == 60 * 40


@pytest.mark.parametrize("padding", [(0.5, 0.0, 0.5, 0.0), (1.0, 1.0, 1.0, 1.0), (0.9, 0.0, 0.9, 0.0)])
def test_all_padding_leaves_nothing(padding: tuple[float, float, float, float]) -> None:
    assert box_mask(64, 0.3, padding).max() == 0


def test_a_box_is_made_once_kept_within_bounds_and_written_by_nobody() -> None:
    box_mask.cache_clear()
    first = box_mask(512, 0.3, (0.0, 0.1, 0.0, 0.0))
    assert box_mask(512, 0.3, (0.0, 0.1, 0.0, 0.0)) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1
    for number in range(100):
        box_mask(64, number / 100)
    assert box_mask.cache_info().currsize <= 16


def test_join_is_the_least_of_each_pixel_and_changes_no_input() -> None:
    a, b, c = (CHANCE.random((32, 32), np.float32) for _ in range(3))
    kept = a.copy()
    assert np.array_equal(join([a, b, c]), np.stack([a, b, c]).min(axis=0))
    assert np.array_equal(a, kept)
    assert join([a]) is a


def test_join_takes_a_box_for_many_faces() -> None:
    many = CHANCE.random((3, 64, 64), np.float32)
    assert np.array_equal(join([many, box_mask(64)]), np.minimum(many, box_mask(64)[None]))


@pytest.mark.parametrize("side", [256, 512])
@pytest.mark.parametrize("size", [128, 256, 512, 1024])
def test_a_maskers_feather_is_a_part_of_the_crop_too(side: int, size: int) -> None:
    """An edge across the crop: 0 on the masked side, and one sigma (5 / 256 of the side) inwards 2 x 0.841 - 1."""
    mask = np.zeros((side, side), np.float32)
    mask[:, side // 2 :] = 1
    soft = feather(mask, size)
    assert soft.shape == (size, size)
    assert soft.dtype == np.float32
    row = soft[size // 2]
    assert row[: size // 2 - size // 128].max() == 0
    sigma = 5 / 256 * size
    at = np.interp(size / 2 - 0.5 + sigma, np.arange(size), row)
    assert at == pytest.approx(0.683, abs=0.04)
    assert row[int(size / 2 + 4 * sigma) :].min() > 0.995


def test_what_a_masker_left_out_stays_out() -> None:
    mask = (CHANCE.random((256, 256)) > 0.5).astype(np.float32)
    mask[100:160, 100:160] = 0
    assert feather(mask, 256)[110:150, 110:150].max() == 0
    assert feather(np.ones((256, 256), np.float32), 300).min() == 1

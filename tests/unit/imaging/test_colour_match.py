"""Statistics before and after, by hand; bounds; and what lies outside the mask's core."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from shared.imaging.colour_match import match_colour
from shared.imaging.masks import box_mask

CHANCE = np.random.default_rng(13)
MASK = box_mask(128, 0.3)
LUMA = np.array([0.114, 0.587, 0.299])


def skin(side: int = 128, spread: float = 18.0) -> np.ndarray:
    """BGR levels about a skin tone, smooth as a face."""
    coarse = CHANCE.normal(0, 1, (side // 8, side // 8, 3))
    fine = cv2.resize(coarse, (side, side), interpolation=cv2.INTER_CUBIC)
    return np.clip(fine * spread + (110, 130, 165), 0, 255).astype(np.uint8)


def core(image: np.ndarray) -> np.ndarray:
    return image[MASK >= 0.9].astype(float)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_mean_and_spread_of_the_core_become_the_references(dtype: type) -> None:
    reference = skin()
    crop = np.clip(skin().astype(float) * 0.9 + (12, -8, 5), 0, 255).astype(dtype)
    matched = match_colour(crop, reference, MASK)
    assert matched.dtype == dtype
    assert np.abs(core(crop).mean(axis=0) - core(reference).mean(axis=0)).max() > 5
    assert np.abs(core(matched).mean(axis=0) - core(reference).mean(axis=0)).max() < 0.6
    have, want = (float((core(image) @ LUMA).std()) for image in (matched, reference))
    assert have == pytest.approx(want, rel=0.02)


def test_a_crop_in_its_own_colours_stays() -> None:
    crop = skin()
    assert np.abs(match_colour(crop, crop, MASK).astype(int) - crop).max() <= 1
    assert np.abs(match_colour(crop.astype(np.float32), crop, MASK) - crop).max() < 0.01


def test_only_the_core_is_measured() -> None:
    """Hair and background at the rim of either crop change nothing inside."""
    crop, reference = skin(), skin()
    plain = match_colour(crop, reference, MASK)
    other_crop, other_reference = crop.copy(), reference.copy()
    other_crop[MASK < 0.5] = (255, 0, 0)
    other_reference[MASK < 0.5] = (0, 255, 0)
    matched = match_colour(other_crop, other_reference, MASK)
    assert np.array_equal(matched[MASK >= 0.9], plain[MASK >= 0.9])


def test_the_shift_is_bounded() -> None:
    """A red lamp 120 levels away moves luma and colour by 40 at most."""
    crop, reference = np.full((128, 128, 3), 60, np.uint8), np.full((128, 128, 3), 180, np.uint8)
    crop[::2] += 4
    reference[::2] += 4
    matched = match_colour(crop, reference, MASK)
    assert float((core(matched) @ LUMA).mean() - (core(crop) @ LUMA).mean()) == pytest.approx(40, abs=0.6)


@pytest.mark.parametrize(("theirs", "gain"), [(60.0, 1.4), (1.0, 0.7)])
def test_the_gain_is_bounded(theirs: float, gain: float) -> None:
    crop, reference = skin(spread=8).astype(np.float32), skin(spread=theirs)
    matched = match_colour(crop, reference, MASK)
    assert (core(matched) @ LUMA).std() / (core(crop) @ LUMA).std() == pytest.approx(gain, rel=1e-3)


def test_a_flat_crop_gains_no_noise() -> None:
    flat = np.full((128, 128, 3), 128, np.uint8)
    assert np.ptp(match_colour(flat, skin(), MASK).reshape(-1, 3), axis=0).max() == 0


def test_without_a_core_nothing_is_known_and_nothing_changes() -> None:
    crop = skin()
    matched = match_colour(crop, skin(), np.full((128, 128), 0.3, np.float32))
    assert np.array_equal(matched, crop)
    assert matched is not crop


def test_the_input_is_not_written() -> None:
    crop, reference = skin(), skin()
    kept = crop.copy()
    match_colour(crop, reference, MASK)
    assert np.array_equal(crop, kept)


def test_large_crops_are_measured_small() -> None:
    """The statistics of 1024 px are those of its 128 px average."""
    crop, reference = (cv2.resize(skin(), (1024, 1024), interpolation=cv2.INTER_CUBIC) for _ in range(2))
    mask = box_mask(1024, 0.3)
    matched = match_colour(crop, reference, mask)
    inside = mask >= 0.9
    assert np.abs(matched[inside].mean(axis=0) - reference[inside].mean(axis=0)).max() < 0.6

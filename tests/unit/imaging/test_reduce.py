"""Smaller pictures: means of areas, colours by their opacity."""

from __future__ import annotations

import numpy as np
import pytest

from shared.imaging.codec import Picture
from shared.imaging.reduce import reduce


def picture(pixels: np.ndarray, alpha: np.ndarray | None = None) -> Picture:
    return Picture(pixels.astype(np.uint8), None if alpha is None else alpha.astype(np.uint8), "png")


def test_pixels_are_means_of_the_areas_they_cover() -> None:
    stripes = np.zeros((30, 60, 3))
    stripes[:, ::2] = 200
    small = reduce(picture(stripes), 20, 10)
    assert small.pixels.shape == (10, 20, 3)
    means = stripes.reshape(10, 3, 20, 3, 3).mean(axis=(1, 3))
    assert np.abs(small.pixels - means).max() <= 0.5


def test_a_ratio_that_is_no_whole_number_keeps_the_mean() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (101, 203, 3))
    small = reduce(picture(noise), 97, 41)
    assert small.pixels.mean(axis=(0, 1)) == pytest.approx(noise.mean(axis=(0, 1)), abs=0.3)


def test_the_same_size_is_the_same_picture() -> None:
    whole = picture(np.zeros((20, 30, 3)))
    assert reduce(whole, 30, 20) is whole


def test_what_is_under_transparent_pixels_does_not_bleed() -> None:
    pixels, alpha = np.zeros((20, 20, 3)), np.zeros((20, 20))
    pixels[:, :10], alpha[:, :10] = 240, 255
    pixels[:, 10:] = (0, 255, 0)
    alpha[:, 10] = 51
    small = reduce(picture(pixels, alpha), 4, 4)
    assert small.alpha is not None
    assert small.alpha[0].tolist() == [255, 255, 10, 0]
    assert small.pixels[0, 0].tolist() == [240] * 3
    assert small.pixels[0, 2].tolist() == [0, 255, 0]
    mixed = reduce(picture(pixels, alpha), 1, 1)
    share = 10 * 255 + 51
    assert mixed.pixels[0, 0].tolist() == [
        round(2550 * 240 / share),
        round((2550 * 240 + 51 * 255) / share),
        round(2550 * 240 / share),
    ]

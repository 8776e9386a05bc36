"""What is obscured stays obscured."""

from __future__ import annotations

import numpy as np
import pytest

from shared.imaging import obscure
from shared.imaging.codec import Picture
from tests.lettering import lettered

NOISE = np.random.default_rng(1).integers(0, 256, (240, 320, 3), np.uint8)


@pytest.mark.parametrize("shape", [(240, 320), (320, 240), (16, 900), (2000, 30)])
def test_a_whole_picture_keeps_a_few_averages(shape: tuple[int, int]) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (*shape, 3), np.uint8)
    made = obscure.whole(Picture(pixels, pixels[..., 0].copy(), "png"))
    assert made.pixels.shape == pixels.shape
    assert made.alpha is not None
    assert made.alpha.shape == shape
    strongest = np.linalg.svd(made.pixels[..., 0].astype(float), compute_uv=False)
    assert (strongest[13:] < 0.01 * strongest[0]).all(), "rank: no more than the averages along the shorter side"


def test_two_pictures_of_the_same_averages_become_one() -> None:
    """Irreversible: what told them apart is gone."""
    board = (np.indices((240, 240)).sum(0) % 2 * 255).astype(np.uint8)
    first = Picture(np.dstack([board] * 3), None, "png")
    second = Picture(np.dstack([255 - board] * 3), None, "png")
    difference = obscure.whole(first).pixels.astype(int) - obscure.whole(second).pixels
    assert np.abs(difference).max() <= 1


def test_only_the_lines_are_covered_and_no_letter_is_left() -> None:
    first, second = lettered(((50, 60), "Forbidden", 40)), lettered(((50, 60), "nebbidroF", 40))
    kept = lettered(((50, 300), "allowed", 40))
    pixels = np.minimum(first, kept)
    before = pixels.copy()
    box = np.array([[45, 55], [260, 55], [260, 110], [45, 110]], np.float32)
    obscure.lines(pixels, [box])
    assert (pixels[200:] == before[200:]).all()
    assert (pixels[:, 400:] == before[:, 400:]).all()
    covered = pixels[60:100, 50:240]
    assert covered.std() < 25, "before it is black on white"
    assert np.abs(np.diff(covered.astype(int), axis=1)).max() < 12, "no edge of a letter"
    obscure.lines(second, [box])


def test_a_turned_box_at_the_rim_covers_its_own_part() -> None:
    pixels = NOISE.copy()
    box = np.array([[-10, 30], [60, -10], [70, 10], [0, 50]], np.float32)
    obscure.lines(pixels, [box, box + 1000])
    assert (pixels[100:] == NOISE[100:]).all()
    assert (pixels[150:, 200:] == NOISE[150:, 200:]).all()
    assert pixels[15:25, 25:35].std() < 20

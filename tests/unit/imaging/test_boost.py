"""Tiles against the pixels they must be made of, and the half-pixel term against geometry and against a picture."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from shared.imaging.boost import join, split
from shared.imaging.canvas import Still
from shared.imaging.geometry import invert
from shared.vision.crops import align, alignment
from shared.vision.templates import TEMPLATES

CHANCE = np.random.default_rng(3)
POINTS = (TEMPLATES["arcface_128"] * 300 + [170.3, 90.7]).astype(np.float32)


def smooth_picture(height: int, width: int) -> np.ndarray:
    coarse = CHANCE.integers(0, 256, (height // 20, width // 20, 3), np.uint8)
    return cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize(("native", "k"), [(128, 1), (128, 2), (128, 3), (256, 4), (128, 8)])
def test_an_identity_model_gives_back_the_crop_exactly(native: int, k: int, dtype: type) -> None:
    crop = CHANCE.integers(0, 256, (native * k, native * k, 3)).astype(dtype)
    tiles = split(crop, k)
    assert tiles.shape == (k * k, native, native, 3)
    assert tiles.dtype == dtype
    assert np.array_equal(join(tiles, k), crop)


def test_each_tile_is_its_phase() -> None:
    crop = CHANCE.integers(0, 256, (24, 24, 3), np.uint8)
    tiles = split(crop, 3)
    for i in range(3):
        for j in range(3):
            assert np.array_equal(tiles[i * 3 + j], crop[i::3, j::3])


def test_other_memory_orders_are_taken() -> None:
    crop = CHANCE.integers(0, 256, (8, 8, 3), np.uint8)
    assert np.array_equal(split(crop[:, ::-1], 2), split(crop[:, ::-1].copy(), 2))
    tiles = split(crop, 2).transpose(0, 2, 1, 3)
    assert np.array_equal(join(tiles, 2), join(tiles.copy(), 2))


@pytest.mark.parametrize("k", [2, 3, 4, 8])
def test_the_middle_of_the_phases_is_the_native_pixel(k: int) -> None:
    """The half-pixel term by hand: pixel r of the native crop lies where pixels k r ... k r + k - 1 have their mean."""
    native, boosted = (alignment(POINTS, "arcface_128", 128 * n, native=128) for n in (1, k))
    pixels = np.array([[0, 0], [50, 77], [127, 127]], np.float64)
    phases = [pixels * k + (j, i) for i in range(k) for j in range(k)]
    back = invert(boosted)
    seen = np.mean([phase @ back[:, :2].T + back[:, 2] for phase in phases], axis=0)
    way = invert(native)
    assert np.allclose(seen, pixels @ way[:, :2].T + way[:, 2], atol=1e-9)


@pytest.mark.parametrize("k", [2, 4])
def test_the_tiles_show_the_face_where_the_native_crop_does(k: int) -> None:
    """Without the term their mean is (k - 1) / 2 boosted pixels off: on this picture several levels."""
    frame = smooth_picture(600, 800)
    native = align(Still(frame), POINTS, "arcface_128", 128).pixels.astype(np.float64)
    boosted = align(Still(frame), POINTS, "arcface_128", 128 * k, native=128).pixels
    unshifted = align(Still(frame), POINTS, "arcface_128", 128 * k).pixels
    error, without = (
        np.abs(split(crop, k).astype(np.float64).mean(axis=0) - native).mean() for crop in (boosted, unshifted)
    )
    assert error < 0.5
    assert without > 6 * error

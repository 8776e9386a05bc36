"""Tiles and what becomes of them: exactly the plain resize, no seam, no more memory than asked for, a clear cap."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from shared.rejections import ImageTooLargeError
from shared.vision.protocols import Floats, Image, ModelAssets, Parameter
from shared.vision.runtime import Runtime
from shared.vision.upscaler import tiled
from shared.vision.upscaler.tiled import Tiled
from shared.vision.upscaler.tiles import Grid, pixels
from tests.standins import upscalers

Make = Callable[..., Tiled]
SMALL: dict[str, Parameter] = {"factor": 2, "tile": 48, "pad": 8, "overlap": 8}


@pytest.fixture
def make(tmp_path: Path, runtime: Runtime) -> Make:
    def upscaler(parameters: dict[str, Parameter], **network: float) -> Tiled:
        files = upscalers.build(tmp_path, parameters, **network)  # type: ignore[arg-type]
        return Tiled(ModelAssets("upscaler", files, parameters), runtime)

    return upscaler


def noise(height: int, width: int, seed: int = 0) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def repeated(frame: Image, factor: int) -> Image:
    return frame.repeat(factor, 0).repeat(factor, 1)


@pytest.mark.parametrize("family", sorted(upscalers.FAMILIES))
def test_every_family_s_tiles_give_exactly_the_plain_resize(make: Make, family: str) -> None:
    parameters = dict(upscalers.FAMILIES[family])
    upscaler = make(parameters)
    tile = int(parameters["tile"])
    frame = noise(tile // 2 + 10, tile + tile // 2)
    assert np.array_equal(upscaler.upscale(frame), repeated(frame, upscaler.factor))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (16, 16), (31, 32), (32, 33), (97, 150)])
def test_any_size_of_picture(make: Make, height: int, width: int) -> None:
    frame = noise(height, width)
    assert np.array_equal(make(SMALL).upscale(frame), repeated(frame, 2))


def test_tiles_resized_with_neighbours_are_the_picture_resized() -> None:
    """Bilinear, so that values beyond a tile's rim count: the margin has them."""
    frame = cv2.GaussianBlur(noise(130, 170), (0, 0), 2).astype(np.uint8)
    grid = Grid(130, 170, tile=48, pad=8, overlap=8)
    assert (grid.rows, grid.columns) == (5, 6)

    def enlarged(picture: Image) -> Floats:
        levels = picture[:, :, ::-1].astype(np.float32) / np.float32(255)
        return cv2.resize(levels, None, fx=4, fy=4, interpolation=cv2.INTER_LINEAR).transpose(2, 0, 1)  # type: ignore[return-value]

    joined, whole = grid.join(map(enlarged, grid.cut(frame)), 4), pixels(enlarged(frame))
    different = joined != whole
    assert np.abs(joined.astype(int) - whole).max() <= 1  # x.5 goes either way
    assert different.mean() < 1e-4


def test_a_network_that_sees_black_beyond_its_tile_leaves_no_trace(make: Make) -> None:
    """Three 3 x 3 means feel the rim three pixels deep; four are thrown away."""
    frame = noise(120, 200, seed=3)
    upscaler = make(SMALL, blurs=3)
    wide: Floats = cv2.copyMakeBorder(frame, 16, 16, 16, 16, cv2.BORDER_REFLECT).astype(np.float32)  # type: ignore[assignment]
    for _ in range(3):
        wide = cv2.blur(wide, (3, 3))  # type: ignore[assignment]
    whole = repeated(np.rint(wide[16:-16, 16:-16]).astype(np.uint8), 2)
    assert np.abs(upscaler.upscale(frame).astype(int) - whole).max() <= 1


def test_tiles_that_disagree_fade_into_each_other(make: Make) -> None:
    """Every tile loses 0.4 from its top left to its bottom right corner: a hard cut would be a step of 34 levels."""
    frame = np.full((120, 160, 3), 200, np.uint8)
    levels = make(SMALL, slope=0.4).upscale(frame).astype(int)
    step_across, step_down = np.abs(np.diff(levels, axis=1)).max(), np.abs(np.diff(levels, axis=0)).max()
    # 16 pixels of fade carry what 64 pixels of tile lose: 0.2 * 255 * 64 / 96 / 16 = 2.1 levels a pixel
    assert 1 <= max(step_across, step_down) <= 4
    assert levels.max() - levels.min() > 30


def test_colours_are_rgb_in_0_to_1_clipped_and_rounded(make: Make, tmp_path: Path) -> None:
    planes = np.array([-0.1, 0.4999 / 255, 0.5001 / 255, 1.2], np.float32)
    assert pixels(np.broadcast_to(planes, (3, 1, 4)))[0, :, 0].tolist() == [0, 0, 1, 255]
    red, green, blue = (np.full((1, 1), level / 255, np.float32) for level in (1, 2, 3))
    assert pixels(np.stack([red, green, blue]))[0, 0].tolist() == [3, 2, 1]
    frame = np.full((16, 16, 3), (200, 100, 50), np.uint8)
    assert (make(SMALL).upscale(frame) == (200, 100, 50)).all()


def test_batches_give_what_single_tiles_give(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = noise(100, 150)
    together = make(SMALL, blurs=2).upscale(frame)
    monkeypatch.setattr(tiled, "MEMORY", 1)
    assert np.array_equal(make(SMALL, blurs=2).upscale(frame), together)


def test_a_network_with_a_fixed_batch_of_one(make: Make) -> None:
    frame = noise(100, 150)
    assert np.array_equal(make(SMALL, batch=1).upscale(frame), repeated(frame, 2))


def test_memory_is_that_of_a_row_of_tiles_not_of_the_picture() -> None:
    parameters = {"tile": 64, "pad": 4, "overlap": 4}
    frame = np.zeros((540, 960, 3), np.uint8)
    grid = Grid(540, 960, **parameters)
    tile = np.zeros((3, 256, 256), np.float32)
    tracemalloc.start()
    result = grid.join((tile for _ in grid.cut(frame)), 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole_in_floats = result.size * 4
    assert peak - result.nbytes < whole_in_floats / 2


@pytest.mark.parametrize(("height", "width"), [(2161, 100), (1081, 1920), (541, 541)])
def test_more_than_4k_is_refused_and_the_cap_is_named(make: Make, height: int, width: int) -> None:
    frame = np.zeros((height, width, 3), np.uint8)
    factor = 2 if width > 541 else 4
    upscaler = make({**SMALL, "factor": factor})
    with pytest.raises(ImageTooLargeError) as caught:
        upscaler.upscale(frame)
    assert "3840 x 2160 (4K)" in caught.value.detail
    assert (caught.value.status, caught.value.code) == (413, "image_too_large")
    assert caught.value.context == {
        "width": width * factor,
        "height": height * factor,
        "factor": factor,
        "max_long_side": 3840,
        "max_short_side": 2160,
    }


@pytest.mark.parametrize(("height", "width"), [(1080, 1920), (1920, 1080), (1080, 1080)])
def test_4k_itself_is_allowed_either_way_up(height: int, width: int) -> None:
    tiled.check(width, height, 2)


def test_warming_runs_the_network(make: Make) -> None:
    make(SMALL).warm()

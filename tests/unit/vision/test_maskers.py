"""Occluders and face parsers: colour order, numbers and feather, against values worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shared.errors import ConfigError
from shared.vision.masker.bisenet import BiSeNet, chosen
from shared.vision.masker.xseg import XSeg
from shared.vision.protocols import Floats, Image, Masker, ModelAssets, Parameter
from shared.vision.runtime import Runtime
from tests.standins import maskers

RED, GREEN, BLUE, BLACK = (0, 0, 255), (0, 255, 0), (255, 0, 0), (0, 0, 0)
Make = Callable[..., Masker]


@pytest.fixture(scope="module")
def xseg(tmp_path_factory: pytest.TempPathFactory, runtime: Runtime) -> XSeg:
    files = maskers.xseg(tmp_path_factory.mktemp("xseg"))
    return XSeg(ModelAssets("xseg_1", files, maskers.XSEG), runtime)


@pytest.fixture(scope="module")
def bisenet_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return maskers.bisenet(tmp_path_factory.mktemp("bisenet"))


def parser(files: dict[str, Path], runtime: Runtime, **more: Parameter) -> BiSeNet:
    return BiSeNet(ModelAssets("bisenet_resnet_34", files, {**maskers.BISENET, **more}), runtime)


def halves(side: int, left: tuple[int, int, int], right: tuple[int, int, int]) -> Image:
    crop = np.empty((side, side, 3), np.uint8)
    crop[:, : side // 2], crop[:, side // 2 :] = left, right
    return crop


def expected_edge(side: int) -> Floats:
    """One row of a step from 1 to 0 in the middle, blurred by 5 / 256 of the side, with 0.5..1 stretched to 0..1."""
    sigma = side * 5 / 256
    distance = [(side / 2 - 0.5 - x) / sigma for x in range(side)]
    blurred = np.array([(1 + math.erf(value / math.sqrt(2))) / 2 for value in distance])
    return np.asarray(np.clip(blurred * 2 - 1, 0, 1), np.float32)


def test_xseg_is_shown_bgr_in_0_to_1_and_half_sure_is_not_sure(xseg: XSeg) -> None:
    crops = np.zeros((3, 256, 256, 3), np.uint8)
    crops[0, :], crops[1, :], crops[2, :] = (204, 0, 0), (0, 255, 255), (127, 255, 255)
    masks = xseg.mask(crops)
    assert masks.dtype == np.float32
    assert masks.shape == (3, 256, 256)
    assert masks[0] == pytest.approx(204 / 255 * 2 - 1, abs=1e-5)
    assert not masks[1].any()
    assert not masks[2].any()


@pytest.mark.parametrize("side", [128, 256, 512, 1024])
def test_the_feather_grows_with_the_crop(xseg: XSeg, side: int) -> None:
    mask = xseg.mask(halves(side, BLUE, BLACK)[None])[0]
    assert mask.shape == (side, side)
    assert np.abs(mask - expected_edge(side)).max() < 0.05
    assert not mask[:, side // 2 + max(1, side // 256) :].any(), "nothing leaks onto what covers the face"


def test_bisenet_is_shown_rgb_and_takes_the_strongest_class(bisenet_files: dict[str, Path], runtime: Runtime) -> None:
    whole = parser(bisenet_files, runtime)
    crops = np.stack([halves(512, RED, BLUE), halves(512, GREEN, BLACK)])
    masks = whole.mask(crops)
    assert np.abs(masks - expected_edge(512)).max() < 0.01
    only_skin = parser(bisenet_files, runtime, regions="skin nose").mask(crops)
    assert np.array_equal(only_skin[0], masks[0])
    assert not only_skin[1].any(), "brows were not asked for"


def test_bisenet_knows_imagenet_s_numbers(bisenet_files: dict[str, Path], runtime: Runtime) -> None:
    """Background has the logit 0.1, skin the red of 0..1: with the right mean and deviation they meet at 25.5."""
    crops = np.zeros((2, 512, 512, 3), np.uint8)
    crops[0, :, :, 2], crops[1, :, :, 2] = 25, 26
    masks = parser(bisenet_files, runtime).mask(crops)
    assert (masks[0].max(), masks[1].min()) == (0, 1)


def test_the_cheap_comparison_is_the_argmax() -> None:
    logits = np.random.default_rng(1).standard_normal((19, 64, 64)).astype(np.float32)
    numbers = (1, 2, 3, 4, 5, 6, 10, 11, 12, 13)
    assert np.array_equal(chosen(logits, numbers), np.isin(logits.argmax(0), numbers).astype(np.float32))


@pytest.mark.parametrize("names", ["skin ears", " "])
def test_a_region_that_is_none_is_refused(bisenet_files: dict[str, Path], runtime: Runtime, names: str) -> None:
    with pytest.raises(ConfigError):
        parser(bisenet_files, runtime, regions=names)


@pytest.mark.parametrize("side", [128, 512])
def test_crops_together_are_crops_one_by_one(
    xseg: XSeg, bisenet_files: dict[str, Path], runtime: Runtime, side: int
) -> None:
    crops = np.random.default_rng(2).integers(0, 256, (3, side, side, 3), dtype=np.uint8)
    for masker in (xseg, parser(bisenet_files, runtime)):
        together = masker.mask(crops)
        assert np.array_equal(together, np.concatenate([masker.mask(crop[None]) for crop in crops]))
        assert masker.mask(crops[:0]).shape == (0, side, side)


def test_each_says_which_crop_it_is_to_see_and_warms(
    xseg: XSeg, bisenet_files: dict[str, Path], runtime: Runtime
) -> None:
    maskers_: list[Masker] = [xseg, parser(bisenet_files, runtime)]
    assert [masker.sees_swapped for masker in maskers_] == [False, True]
    for masker in maskers_:
        masker.warm()

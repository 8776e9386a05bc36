"""Learned swappers and restorers on segments: faces of several frames in one run, and nothing else changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from functions.swap import reading
from shared.models.cache import ModelCache
from shared.models.registry import ModelRegistry
from shared.vision.runtime import Runtime
from tests.functions.film import Film, pictures
from tests.standins import embedders, enhancers, swappers
from tests.standins.tables import cache_over, table, with_tables

CLIP = Path(__file__).parents[1] / "data/video/face_gone_frames_10_to_19.mp4"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def registry(
    model_cache: ModelCache, model_files: Callable[[str], object], tmp_path_factory: pytest.TempPathFactory
) -> ModelRegistry:
    for name in ("centerface", "face_mesh", "open_nsfw"):
        model_files(name)
    folder = tmp_path_factory.mktemp("models")
    arcface, family = "shared.vision.embedder.arcface:ArcFace", swappers.FAMILIES["inswapper"]
    restorer, gfpgan = "shared.vision.enhancer.restorer:Restorer", enhancers.FAMILIES["gfpgan"]
    bright = enhancers.build(folder / "b", gfpgan, shift=(0.2, 0.2, 0.2))
    tables = [
        table("test_arcface", "embedder", arcface, embedders.build(folder / "e"), embedders.PARAMETERS),
        table(
            "learned",
            "swapper",
            family.adapter,
            swappers.build("inswapper", folder / "s"),
            family.parameters,
            uses={"embedder": "test_arcface"},
        ),
        table("bright", "enhancer", restorer, {"model": bright["model"]}, gfpgan),
    ]
    catalog = with_tables(folder, tables).choosing({"embedder": "test_arcface"})
    return ModelRegistry(catalog, cache_over(folder, model_cache), Runtime(threads=2))


def test_a_learned_swapper_changes_the_face_and_nothing_else(
    tmp_path: Path, registry: ModelRegistry, sample: Callable[[str], Path]
) -> None:
    film = Film(tmp_path / "objects", registry)
    result, path = film.run(film.job(sample("astronaut"), CLIP, swapper="learned", quality=100))
    assert result.frames_swapped == 20
    for before, after in list(zip(pictures(CLIP), pictures(path), strict=True))[::5]:
        change = cv2.blur(np.abs(before.astype(np.float32) - after).max(2), (5, 5))
        assert change[110:].max() < 16  # below the chin, but for the encoder's loss
        assert change[150:].mean() < 2


def test_runs_of_several_frames_give_what_single_ones_do(
    tmp_path: Path, registry: ModelRegistry, sample: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str, together: int) -> list[np.ndarray]:
        monkeypatch.setattr(reading, "TOGETHER", together)
        film = Film(tmp_path / name, registry)
        return pictures(film.run(film.job(sample("astronaut"), CLIP, swapper="learned"))[1])

    apart = [np.abs(a.astype(int) - b).max() for a, b in zip(run("four", 4), run("one", 1), strict=True)]
    assert max(apart) <= 2  # a network's rows may differ in the last bit with the size of a batch


def test_a_restorer_works_on_the_swapped_frames(
    tmp_path: Path, registry: ModelRegistry, sample: Callable[[str], Path]
) -> None:
    plain, bright = Film(tmp_path / "plain", registry), Film(tmp_path / "bright", registry)
    without = pictures(plain.run(plain.job(sample("astronaut"), CLIP))[1])
    made = pictures(bright.run(bright.job(sample("astronaut"), CLIP, enhancer="bright", enhance_blend=1.0))[1])
    face = np.s_[30:70, 85:115]
    assert made[5][face].mean() > without[5][face].mean() + 10
    assert abs(made[15].mean() - without[15].mean()) < 1

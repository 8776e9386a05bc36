"""The registry with small adapters of its own: one load a name, errors that name what is wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.errors import ConfigError, ModelError, ModelNotFoundError
from shared.models import build, catalog
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.registry import ModelRegistry
from shared.models.spec import FileSpec, ModelSpec
from shared.settings import ModelSettings
from shared.vision.protocols import Detector, Image, ModelAssets, Moderator
from shared.vision.runtime import Runtime
from tests.unit.models.places import file_spec

LOADED: list[str] = []
WARMED: list[str] = []


class Scorer:
    """A moderator that is slow to load and refuses to when its file says so."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        LOADED.append(assets.name)
        time.sleep(0.05)
        if assets.parameters.get("broken"):
            raise ModelError("broken")
        self.value = float(assets.files["model"].read_text())
        self.runtime = runtime

    def warm(self) -> None:
        WARMED.append(threading.current_thread().name)
        time.sleep(0.05)

    def score(self, image: Image) -> float:
        return self.value


def spec(name: str, *files: FileSpec, adapter: str = "Scorer", broken: bool = False) -> ModelSpec:
    return ModelSpec(
        name=name,
        licence="none",
        files=files,
        role="moderator",
        adapter=f"{__name__}:{adapter}",
        vendor="",
        commercial="yes",
        parameters={"broken": broken},
    )


@pytest.fixture
def registry(tmp_path: Path) -> ModelRegistry:
    LOADED.clear()
    WARMED.clear()
    (tmp_path / "half").write_text("0.5")
    file = file_spec(b"0.5", f"file:{tmp_path}/half")
    specs = [spec("one", file), spec("two", file), spec("bad", file, broken=True), spec("lost", file, adapter="Nobody")]
    specs.append(spec("absent", file_spec(b"1")))
    models = {item.name: item for item in specs}
    return ModelRegistry(Catalog(models, {}, {"moderator": "one"}, {}), ModelCache(tmp_path / "cache"), Runtime())


def test_many_threads_share_one_load(registry: ModelRegistry) -> None:
    with ThreadPoolExecutor(16) as threads:
        found = set(threads.map(lambda _: registry.get("one", Scorer), range(64)))
    assert len(found) == 1
    assert LOADED == ["one"]


def test_a_role_is_its_chosen_model(registry: ModelRegistry) -> None:
    moderator = registry.get("moderator", Moderator)
    assert moderator is registry.get("one", Moderator)
    assert moderator.score(None) == 0.5  # type: ignore[arg-type]


def test_warm_loads_in_parallel_and_runs_one_sample_each(registry: ModelRegistry) -> None:
    registry.warm("one", "two", "moderator")
    assert sorted(LOADED) == ["one", "two"]
    assert len(WARMED) == len(set(WARMED)) == 2
    registry.warm("one")
    registry.warm()
    assert len(WARMED) == 2


def test_nothing_is_loaded_before_it_is_asked_for(registry: ModelRegistry) -> None:
    assert LOADED == []


def test_a_model_of_another_role_is_refused(registry: ModelRegistry) -> None:
    with pytest.raises(ModelNotFoundError, match=r"'one' is a moderator, no Detector: no detect\(\)"):
        registry.get("one", Detector)


def test_an_unknown_name_is_answered_with_the_known_ones(registry: ModelRegistry) -> None:
    with pytest.raises(ModelNotFoundError, match=r"'three'.*absent, bad, lost, one, two"):
        registry.get("three", Scorer)


def test_a_failed_load_is_tried_again(registry: ModelRegistry) -> None:
    for _ in range(2):
        with pytest.raises(ModelError, match="broken"):
            registry.warm("one", "bad")
    assert LOADED.count("bad") == 2
    assert LOADED.count("one") == 1


def test_an_adapter_that_does_not_exist_is_a_wrong_configuration(registry: ModelRegistry) -> None:
    with pytest.raises(ConfigError, match="lost: the adapter"):
        registry.get("lost", Scorer)


def test_a_model_whose_files_cannot_be_had(registry: ModelRegistry) -> None:
    with pytest.raises(ModelNotFoundError, match="absent"):
        registry.get("absent", Scorer)
    assert LOADED == []


def test_every_model_that_a_stage_needs_loads_and_runs(
    model_cache: ModelCache, model_files: Callable[[str], Mapping[str, Path]]
) -> None:
    known = catalog.default()
    names = sorted({spec.name for stage in known.stages for spec in known.needed_by(stage)})
    for name in names:
        model_files(name)
    build.registry(ModelSettings(cache=model_cache.root)).warm(*names)

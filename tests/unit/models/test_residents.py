"""The memory budget: what is used longest ago goes first, what is pinned or in use never does."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.errors import ModelError
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.registry import ModelRegistry
from shared.models.spec import ModelSpec
from shared.vision.protocols import ModelAssets
from shared.vision.runtime import Runtime
from tests.unit.models.places import file_spec

SIZE = 1000
Make = Callable[[int], ModelRegistry]


class Holder:
    """An adapter that keeps what it works with."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        if assets.parameters.get("broken"):
            raise ModelError("broken")
        self.uses = assets.uses

    def warm(self) -> None: ...


class Meters:
    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.gauges: dict[str, float] = {}
        self.observed: list[tuple[str, str]] = []
        self._lock = threading.Lock()

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        with self._lock:
            self.counts[name, labels["model"]] += int(amount)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        self.observed.append((name, labels["model"]))

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.gauges[name] = value


@pytest.fixture
def meters() -> Meters:
    return Meters()


@pytest.fixture
def make(tmp_path: Path, meters: Meters) -> Make:
    """A registry of models of 1000 bytes each, with room for so many bytes."""

    def spec(name: str, *, broken: bool = False, **uses: str) -> ModelSpec:
        data = name.encode().ljust(SIZE)
        (tmp_path / name).write_bytes(data)
        file = file_spec(data, f"file:{tmp_path / name}")
        adapter = f"{__name__}:Holder"
        return ModelSpec(name, "none", (file,), "holder", adapter, "", "yes", {"broken": broken}, uses)

    specs = [*(spec(name) for name in "abcd"), spec("user", part="a"), spec("bad", broken=True)]
    catalog = Catalog({item.name: item for item in specs}, {}, {}, {})
    return lambda budget: ModelRegistry(catalog, ModelCache(tmp_path / "cache"), Runtime(), budget=budget, meter=meters)


def test_without_a_budget_everything_stays(make: Make, meters: Meters) -> None:
    registry = make(0)
    for name in "abcda":
        registry.get(name, Holder)
    assert registry.residents.names() == ["a", "b", "c", "d"]
    assert meters.gauges == {"models_resident": 4, "models_resident_bytes": 4 * SIZE}
    assert meters.counts == {
        ("model_hits", "a"): 1,
        **{("cache_misses", name): 1 for name in "abcd"},
        **{("fetch_bytes", name): SIZE for name in "abcd"},
    }
    assert meters.observed == [("model_load", name) for name in "abcd"]


def test_the_least_recently_used_goes_first(make: Make, meters: Meters) -> None:
    registry = make(3 * SIZE)
    for name in "abcad":
        registry.get(name, Holder)
    assert registry.residents.names() == ["a", "c", "d"]
    assert meters.counts["models_dropped", "b"] == 1
    registry.get("b", Holder)
    assert registry.residents.names() == ["a", "b", "d"]
    assert registry.residents.size() == 3 * SIZE


def test_what_a_job_holds_is_never_dropped(make: Make, meters: Meters) -> None:
    registry = make(SIZE)
    held = registry.get("a", Holder)
    registry.get("b", Holder)
    assert registry.residents.names() == ["a", "b"]
    assert meters.counts["models_over_budget", "b"] == 1
    assert registry.get("a", Holder) is held
    del held
    registry.get("c", Holder)
    assert registry.residents.names() == ["c"]
    assert registry.residents.size() == SIZE


def test_what_another_model_works_with_goes_only_with_it(make: Make) -> None:
    registry = make(2 * SIZE)
    user = registry.get("user", Holder)
    assert registry.get("a", Holder) is user.uses["part"]
    registry.get("b", Holder)
    assert registry.residents.names() == ["a", "b", "user"]
    del user
    for _ in range(2):
        registry.get("c", Holder)
        registry.get("d", Holder)
    assert registry.residents.names() == ["c", "d"]


def test_what_the_stage_warmed_stays(make: Make) -> None:
    registry = make(2 * SIZE)
    registry.warm("a")
    for name in "bcd":
        registry.get(name, Holder)
    assert registry.residents.names() == ["a", "d"]


def test_a_failed_load_takes_no_room(make: Make) -> None:
    registry = make(2 * SIZE)
    with pytest.raises(ModelError, match="broken"):
        registry.get("bad", Holder)
    assert registry.residents.size() == 0


def test_a_dropped_models_files_may_leave_the_cache(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[str] = []
    monkeypatch.setattr(ModelCache, "release", lambda _, spec: released.append(spec.name))
    registry = make(SIZE)
    registry.get("a", Holder)
    registry.get("b", Holder)
    assert released == ["a"]


def test_threads_that_load_and_let_go_stay_within_what_they_hold(make: Make) -> None:
    registry = make(2 * SIZE)

    def work(number: int) -> bool:
        name = "abcd"[number % 4]
        held = registry.get(name, Holder)
        return registry.get(name, Holder) is held

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(400)))
    registry.get("a", Holder)
    registry.get("b", Holder)
    registry.get("c", Holder)
    assert registry.residents.size() <= 2 * SIZE

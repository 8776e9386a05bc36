"""Versions of models by tenant: its own first, side by side in memory, shared when equal, closed to everybody else."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from infra.models.publishing import Publisher
from shared.errors import ModelNotFoundError
from shared.models import owners
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.owners import Choice, choice
from shared.models.progress import silent
from shared.models.registry import ModelRegistry
from shared.models.spec import ModelSpec
from shared.models.versions import Versions
from shared.serving.context import JobModels, LazyModels
from shared.settings import ModelSettings
from shared.storage.local import LocalStore
from shared.tenancy.tenant import Policy, Tenant
from shared.vision.protocols import Landmarker, ModelAssets
from shared.vision.runtime import Runtime
from tests.unit.models.places import digest, file_spec

SIZE = 1000
ACME, OTHER = Tenant("acme"), Tenant("other")
BETA = Tenant("early", Policy(model_tag="beta"))


class Reader:
    """An adapter that keeps what its files say."""

    def __init__(self, assets: ModelAssets, runtime: Runtime) -> None:
        self.text = assets.files["model"].read_text().strip()
        self.used = {part: used for part, used in assets.uses.items() if isinstance(used, Reader)}

    def warm(self) -> None: ...


class World:
    """A bucket, a node's cache and the registry of one process on it. The catalogue's file says `catalogue`."""

    def __init__(self, root: Path, budget: int = 0, tag: str = "stable") -> None:
        self.root = root
        self.store = LocalStore(root / "bucket")
        data = padded("catalogue")
        (root / "catalogued").write_bytes(data)
        file = file_spec(data, f"file:{root / 'catalogued'}", name="m.bin")
        adapter = f"{__name__}:Reader"
        models = {
            name: ModelSpec(name, "none", (file,), "reader", adapter, "", "yes", {}, uses)
            for name, uses in (("net", {}), ("user", {"part": "net"}))
        }
        self.catalog = Catalog(models, {}, {}, {})
        self.tag = tag
        self.restart(budget)

    def restart(self, budget: int = 0, known: owners.Owners | None = None) -> None:
        cache = ModelCache(self.root / "cache", self.store, tag=self.tag)
        self.registry = ModelRegistry(self.catalog, cache, Runtime(), budget=budget)
        self.versions = Versions(self.registry, self.tag, lambda: known, self._cache)

    def _cache(self, choice: Choice) -> ModelCache:
        root = self.root / "cache"
        return ModelCache(root, self.store, tag=choice.tag, otherwise=self.tag, tenant=choice.owner)

    def push(self, text: str, channel: str = "stable", owner: str = "", name: str = "net") -> None:
        (self.root / "m.bin").write_bytes(padded(text))
        publisher = Publisher(self.store, owner)
        publisher.push(name, text, {"model": self.root / "m.bin"}, silent)
        publisher.promote(name, text, channel)

    def get(self, tenant: Tenant, name: str = "net") -> Reader:
        return self.versions.of(tenant).get(name, Reader)

    def sets(self, name: str = "net") -> list[str]:
        return sorted(path.name.rpartition("-")[0] for path in (self.root / "cache").glob(f"*{name}-*"))


def padded(text: str) -> bytes:
    return text.encode().ljust(SIZE)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_tenants_own_model_comes_first_and_only_for_it(world: World) -> None:
    world.push("common")
    world.push("secret", owner="acme")
    assert [world.get(tenant).text for tenant in (ACME, OTHER, ACME)] == ["secret", "common", "secret"]
    assert world.registry.get("net", Reader).text == "common"
    assert world.registry.residents.names() == ["net", "net"], "side by side"


def test_a_tenants_policy_chooses_a_version(world: World) -> None:
    world.push("old")
    world.push("new", channel="beta")
    assert [world.get(tenant).text for tenant in (OTHER, BETA)] == ["old", "new"]
    assert world.get(Tenant("exact", Policy(model_tag="new"))) is world.get(BETA), "a version by its name"


def test_what_has_no_such_version_is_the_installations(world: World) -> None:
    world.push("common")
    assert world.get(BETA).text == "common"
    assert world.get(BETA) is world.get(OTHER)


def test_equal_bytes_share_the_memory_whichever_way_they_came(world: World) -> None:
    world.push("same")
    world.push("same", channel="beta")
    world.push("same", owner="acme")
    adapters = [world.get(tenant) for tenant in (ACME, BETA, OTHER)]
    assert len({id(adapter) for adapter in adapters}) == 1
    assert world.registry.residents.size() == SIZE


def test_a_model_is_another_one_when_what_it_uses_is(world: World) -> None:
    world.push("secret", owner="acme")
    mine, theirs = world.get(ACME, "user"), world.get(OTHER, "user")
    assert (mine.used["part"].text, theirs.used["part"].text) == ("secret", "catalogue")
    assert mine is not theirs
    assert mine.used["part"] is world.get(ACME)


def test_who_knows_the_digest_of_anothers_model_gets_nothing(world: World) -> None:
    """Not from the bucket, nor from the disk, nor out of the memory in which it lies."""
    world.push("secret", owner="acme")
    held = world.get(ACME)
    own = Publisher(world.store, "acme").index("net", "secret")
    world.store.put("models/tenants/other/index/net@stable.json", replace(own, version="stable").document())
    for name in ("net", "user"):
        with pytest.raises(ModelNotFoundError):
            world.get(OTHER, name)
    assert held.text == "secret"
    assert world.sets() == ["acme~net"]


def test_the_budget_holds_over_versions_and_what_is_dropped_may_leave_the_disk(tmp_path: Path) -> None:
    world = World(tmp_path, budget=SIZE)
    world.push("common")
    world.push("secret", owner="acme")
    assert world.get(ACME).text == "secret"
    gc.collect()
    assert world.get(OTHER).text == "common"
    assert world.registry.residents.names() == ["net"]
    assert world.registry.residents.size() == SIZE
    evictor = world.registry._cache._evictor
    for path in (tmp_path / "cache/.locks").glob("*.use"):
        os.utime(path, (time.time() - 3600,) * 2)
    assert evictor.one(), "of the tenant's set nobody holds anything"
    assert not evictor.one(), "the other one is in use"
    assert world.sets() == ["net"]
    assert world.get(ACME).text == "secret", "fetched again"


def test_a_set_in_use_by_two_ways_stays_until_the_last_lets_go(world: World) -> None:
    world.push("same")
    world.push("same", channel="beta")
    first, second = world.get(OTHER), world.get(BETA)
    assert first is second
    assert not world.registry._cache._evictor.remove(next(path.name for path in (world.root / "cache").glob("net-*")))


def test_a_read_only_cache_says_what_it_lacks_and_goes_on(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.push("common")
    world.get(OTHER)
    world.push("secret", owner="acme")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refused)
    monkeypatch.setattr("shared.models.locks._open", refused)
    with pytest.raises(ModelNotFoundError, match="net is not in the model cache, which is read-only here"):
        world.get(ACME)
    assert world.get(OTHER).text == "common"


def test_a_tenant_without_models_of_its_own_costs_no_look(world: World) -> None:
    world.push("common")
    world.restart(known={"acme": ("net",)})
    assert world.versions.of(OTHER) is world.registry
    assert world.versions.of(ACME) is not world.registry
    assert world.versions.of(ACME) is world.versions.of(ACME)
    (world.root / "other").mkdir()
    untagged = World(world.root / "other", tag="")
    assert untagged.versions.of(ACME) is untagged.registry, "without a tag nobody has versions"
    without = Versions(world.registry, "stable", lambda: None, None)
    assert without.of(ACME) is without.of(BETA) is world.registry


@pytest.mark.parametrize(
    ("tenant", "tag", "known", "expected"),
    [
        (ACME, "stable", None, Choice("acme", "stable")),
        (ACME, "stable", {"acme": ("net",)}, Choice("acme", "stable")),
        (ACME, "stable", {}, Choice("", "stable")),
        (ACME, "", None, Choice("", "")),
        (BETA, "stable", {}, Choice("", "beta")),
        (BETA, "", None, Choice("early", "beta")),
    ],
)
def test_the_choice(tenant: Tenant, tag: str, known: owners.Owners | None, expected: Choice) -> None:
    assert choice(tenant, tag, known) == expected


def test_who_has_models_is_noted_for_functions(world: World, tmp_path: Path) -> None:
    world.push("common")
    world.push("secret", owner="acme")
    world.push("more", owner="acme", name="user")
    world.store.put("models/tenants/empty/derived/x.json", b"{}")
    found = owners.look(world.store)
    assert found == {"acme": ("net", "user")}
    folder = tmp_path / "cache/.tags"
    assert owners.noted(folder) is None
    owners.note(folder, found)
    assert owners.noted(folder) == found
    (folder / owners.NAME).write_text("[")
    assert owners.noted(folder) is None


def test_jobs_of_two_tenants_use_two_versions_of_a_real_model(
    tmp_path: Path, model_files: Callable[[str], Mapping[str, Path]]
) -> None:
    mine = onnx.load(model_files("face_mesh")["model"])
    mine.doc_string = "acme's own"
    onnx.save(mine, tmp_path / "mine.onnx")
    store = LocalStore(tmp_path / "bucket")
    for owner, path in (("", model_files("face_mesh")["model"]), ("acme", tmp_path / "mine.onnx")):
        publisher = Publisher(store, owner)
        publisher.push("face_mesh", "1", {"model": path}, silent)
        publisher.promote("face_mesh", "1", "stable")
    models = LazyModels(ModelSettings(cache=tmp_path / "cache", bucket=f"file:{store.root}", tag="stable"))
    acme, other = (JobModels(models, tenant) for tenant in (ACME, OTHER))
    adapters = [view.get("landmarker", Landmarker) for view in (acme, other, models)]
    assert adapters[0] is not adapters[1]
    assert adapters[1] is adapters[2]
    assert acme.digest("face_mesh") != other.digest("face_mesh")
    assert acme.provider("landmarker") == "cpu"
    owned = next((tmp_path / "cache").glob("acme~face_mesh-*/*.onnx"))
    assert digest(owned.read_bytes()) == digest((tmp_path / "mine.onnx").read_bytes())

"""Graphs and engines through the bucket: made on one node, taken by the next, and never by anything else."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from infra.models.publishing import Publisher, garbage
from shared.errors import StoreAccessDeniedError, StoreUnavailableError, WakeswapError
from shared.models import artefact, build
from shared.models.artefact import Artefact
from shared.models.cache import ModelCache
from shared.models.derived import DerivedGraphs
from shared.models.engines import KeptEngines
from shared.models.index import IndexedFile
from shared.models.made import made_of
from shared.models.progress import silent
from shared.models.sharing import SharedArtefacts
from shared.models.spec import FileSpec
from shared.settings import ModelSettings
from shared.storage.local import LocalStore
from shared.storage.protocol import ObjectInfo
from shared.vision.graphs import GRAPH, WEIGHTS, Facts
from shared.vision.runtime import Runtime
from tests.unit.models.places import digest, file_set
from tests.unit.models.test_graphs import cached, mapped, output

HERE: Facts = {"runtime": "1", "provider": "CPUExecutionProvider", "machine": "m", "device": "d", "precision": "p"}


class Counting(LocalStore):
    """Says no to writes while `refuses` is set."""

    refuses: WakeswapError | None = None
    writes = 0

    def _asked(self) -> None:
        self.writes += 1
        if self.refuses:
            raise self.refuses

    def upload(self, path: Path, key: str, **options: object) -> ObjectInfo:
        self._asked()
        return super().upload(path, key)

    def create(self, key: str, data: bytes, **options: object) -> ObjectInfo:
        self._asked()
        return super().create(key, data)

    def replace(self, key: str, data: bytes, etag: str, **options: object) -> ObjectInfo:
        self._asked()
        return super().replace(key, data, etag)


@pytest.fixture
def store(tmp_path: Path) -> Counting:
    return Counting(tmp_path / "bucket")


def node(root: Path, store: LocalStore, *, seed: int = 0, put: bool = True) -> tuple[Path, DerivedGraphs]:
    """A model file in the cache of a node of its own, and the node's graphs."""
    model = cached(root, seed=seed)
    return model, DerivedGraphs(root / "cache", shared=SharedArtefacts(store, put=put))


def keep(graphs: DerivedGraphs, model: Path, facts: Facts = HERE, text: str = "graph") -> None:
    with graphs.keep(model, facts) as folder:
        assert folder is not None
        (folder / GRAPH).write_text(text)
        (folder / WEIGHTS).write_text(f"{text}'s weights")


def documents(store: LocalStore) -> list[str]:
    return [info.key for info in store.list("models/derived/").objects]


def settings(root: Path, store: LocalStore, derived: str = "share") -> ModelSettings:
    return ModelSettings(cache=root / "cache", bucket=f"file:{store.root}", derived=derived)


def test_what_one_node_has_made_the_next_one_maps(tmp_path: Path, store: Counting) -> None:
    first, second = cached(tmp_path / "a", seed=0), cached(tmp_path / "b", seed=0)
    for name, model in (("a", first), ("b", second)):
        given = settings(tmp_path / name, store)
        build.prepare(given, {"model": model}, build.shared(given, put=True))
    assert len(documents(store)) == 1
    folders = [next((tmp_path / name / "cache").glob("derived-*")) for name in "ab"]
    assert folders[0].name == folders[1].name
    for name in (GRAPH, WEIGHTS):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    session = Runtime(threads=1, graphs=DerivedGraphs(tmp_path / "b/cache")).session(second)
    assert mapped(session)
    np.testing.assert_array_equal(output(session), output(Runtime(threads=1).session(second)))


def test_the_runtime_takes_the_buckets_graph_instead_of_making_one(tmp_path: Path, store: Counting) -> None:
    made, graphs = node(tmp_path / "a", store)
    Runtime(threads=1, graphs=graphs).session(made)
    known = build._facts(ModelSettings())
    assert known is not None
    graphs.share(made, known)
    model, others = node(tmp_path / "b", store, put=False)
    assert mapped(Runtime(threads=1, graphs=others).session(model))


@pytest.mark.parametrize("fact", list(HERE))
def test_what_was_made_for_something_else_is_not_taken(tmp_path: Path, store: Counting, fact: str) -> None:
    model, graphs = node(tmp_path / "a", store)
    keep(graphs, model)
    graphs.share(model, HERE)
    other, others = node(tmp_path / "b", store)
    assert others.find(other, {**HERE, fact: "another"}) is None
    assert others.find(other, HERE) is not None


def test_two_models_never_share_one(tmp_path: Path, store: Counting) -> None:
    model, graphs = node(tmp_path / "a", store)
    keep(graphs, model)
    graphs.share(model, HERE)
    other, others = node(tmp_path / "b", store, seed=1)
    assert others.find(other, HERE) is None


def test_a_document_under_anothers_name_is_not_believed(tmp_path: Path, store: Counting) -> None:
    """Whole and sound in itself, but made for another GPU."""
    model, graphs = node(tmp_path / "a", store)
    there = {**HERE, "device": "another"}
    keep(graphs, model, there)
    graphs.share(model, there)
    (key,) = documents(store)
    made = made_of(model, HERE)
    assert made is not None
    store.put(f"models/derived/{made.name}.json", store.get(key)[0])
    assert graphs.find(model, HERE) is None
    keep(graphs, model, HERE, "right")
    graphs.share(model, HERE)
    other, others = node(tmp_path / "b", store)
    graph = others.find(other, HERE)
    assert graph is not None
    assert graph.read_text() == "right", "the wrong document was replaced"


@pytest.mark.parametrize("damage", ["cut", "other bytes", "gone"])
def test_damaged_files_are_not_taken_and_nothing_is_left(
    tmp_path: Path, store: Counting, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    model, graphs = node(tmp_path / "a", store)
    keep(graphs, model)
    graphs.share(model, HERE)
    key = f"models/sha256/{digest(b'graph')}"
    store.delete(key) if damage == "gone" else store.put(key, b"gra" if damage == "cut" else b"grapX")
    other, others = node(tmp_path / "b", store)
    assert others.find(other, HERE) is None
    assert "not taken from the bucket" in caplog.text
    assert not list((tmp_path / "b/cache").glob("derived-*"))
    assert not list((tmp_path / "b/cache/.tmp").glob("derived-*"))


def test_credentials_that_only_read_are_asked_once_and_say_nothing(
    tmp_path: Path, store: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    store.refuses = StoreAccessDeniedError()
    shared = SharedArtefacts(store, put=True)
    for seed in (0, 1):
        model = cached(tmp_path, seed=seed)
        graphs = DerivedGraphs(tmp_path / "cache", shared=shared)
        keep(graphs, model)
        graphs.share(model, HERE)
    assert store.writes == 1
    assert [record for record in caplog.records if record.levelno >= logging.INFO] == []
    assert documents(store) == []


def test_a_bucket_that_fails_is_no_error_and_is_asked_again(
    tmp_path: Path, store: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    store.refuses = StoreUnavailableError()
    model, graphs = node(tmp_path, store)
    keep(graphs, model)
    graphs.share(model, HERE)
    assert "not put into the bucket" in caplog.text
    store.refuses = None
    graphs.share(model, HERE)
    assert len(documents(store)) == 1
    writes = store.writes
    graphs.share(model, HERE)
    assert store.writes == writes, "the node remembers"


@pytest.mark.parametrize(("derived", "written", "taken"), [("fetch", 0, True), ("local", 0, False)])
def test_the_setting_decides(tmp_path: Path, store: Counting, derived: str, written: int, taken: bool) -> None:
    given = settings(tmp_path / "a", store, derived=derived)
    build.prepare(given, {"model": cached(tmp_path / "a", seed=0)}, build.shared(given, put=True))
    assert len(documents(store)) == written
    full = settings(tmp_path / "b", store)
    build.prepare(full, {"model": cached(tmp_path / "b", seed=0)}, build.shared(full, put=True))
    model = cached(tmp_path / "c", seed=0)
    given = settings(tmp_path / "c", store, derived=derived)
    build.prepare(given, {"model": model}, build.shared(given, put=True))
    (folder,) = (tmp_path / "c/cache").glob("derived-*")
    assert (folder / "in_bucket").exists() == taken


def test_of_two_nodes_at_once_one_document_stands(tmp_path: Path, store: Counting) -> None:
    for name in "ab":
        model, graphs = node(tmp_path / name, LocalStore(tmp_path / f"apart-{name}"))
        keep(graphs, model, text=name)
        DerivedGraphs(tmp_path / name / "cache", shared=SharedArtefacts(store, put=True)).share(model, HERE)
    (key,) = documents(store)
    found = artefact.parse(store.get(key)[0], key.rpartition("/")[2].removesuffix(".json"))
    assert found.files[GRAPH].sha256 == digest(b"a"), "it never changes"


def test_a_tenants_graph_lies_with_its_own(tmp_path: Path, store: Counting) -> None:
    file = FileSpec("model", "net.onnx", sources=(f"file:{cached(tmp_path / 'origin', seed=0)}",))
    owned = file_set(file, name="net")
    owned = type(owned)(owned.name, owned.licence, owned.files, owner="acme")
    model = ModelCache(tmp_path / "cache").ensure(owned)["model"]
    graphs = DerivedGraphs(tmp_path / "cache", shared=SharedArtefacts(store, put=True))
    keep(graphs, model)
    graphs.share(model, HERE)
    keys = [info.key for info in store.list("").objects]
    assert len(keys) == 3
    assert all(key.startswith("models/tenants/acme/") for key in keys)


def aged(store: LocalStore, days: float) -> None:
    for path in (store.root / "models").rglob("*"):
        os.utime(path, (time.time() - days * 86400,) * 2)


def test_garbage_spares_what_is_made_of_a_model_that_is_known(tmp_path: Path, store: Counting) -> None:
    model, graphs = node(tmp_path, store)
    Publisher(store).push("net", "1", {"model": model}, silent)
    keep(graphs, model)
    graphs.share(model, HERE)
    aged(store, 2)
    limit = time.time() - 86400
    assert list(garbage(store, limit)) == []
    (document,) = documents(store)
    files = {f"models/sha256/{digest(text)}" for text in (b"graph", b"graph's weights")}
    assert {info.key for info in garbage(store, limit, made=limit)} == {document, *files}, "too old"
    Publisher(store).drop("net", "1")
    source = digest(model.read_bytes())
    assert {info.key for info in garbage(store, limit)} == {document, *files, f"models/sha256/{source}"}
    assert {info.key for info in garbage(store, limit, known={source})} == {f"models/sha256/{source}"}, (
        "the catalogue's"
    )
    assert list(garbage(store, limit - 2 * 86400)) == [], "too young"
    store.put(document, b"{")
    aged(store, 2)
    assert document in {info.key for info in garbage(store, limit, known={source})}, "nobody can use it"


@pytest.mark.parametrize(
    "change", [{"files": {}}, {"made_for": {}}, {"sources": 1}, {"digest": ""}, {"files": {"a": {"name": "b"}}}]
)
def test_a_document_that_was_edited_is_refused(change: Mapping[str, object]) -> None:
    made_for = json.dumps({"model": "m"}, sort_keys=True)
    whole = Artefact(made_for, ("0" * 64,), {"a": IndexedFile("a", 1, "0" * 64)})
    name = artefact.name_of(made_for)
    assert artefact.parse(whole.document(), name) == whole
    with pytest.raises(WakeswapError):
        artefact.parse(json.dumps({**json.loads(whole.document()), **change}).encode(), name)
    with pytest.raises(WakeswapError):
        artefact.parse(whole.document(), "0" * 32)


def engines(root: Path, store: LocalStore) -> tuple[Path, KeptEngines]:
    model = cached(root, seed=0)
    return model, KeptEngines(root / "cache", SharedArtefacts(store, put=True))


def test_engines_are_kept_per_model_and_shared_as_they_come(tmp_path: Path, store: Counting) -> None:
    model, kept = engines(tmp_path / "a", store)
    other = cached(tmp_path / "a", seed=1, name="other")
    folder = kept.folder(model, HERE)
    assert folder is not None
    assert folder != kept.folder(other, HERE)
    assert folder != kept.folder(model, {**HERE, "tensorrt": "11"})
    assert not kept.made(model, HERE)
    (folder / "one_sm90.engine").write_text("1")
    kept.share(model, HERE)
    assert documents(store) == [], "TensorRT may still write to it"
    kept.share(model, HERE, settled=0)
    (folder / "two_sm90.engine").write_text("2")
    (folder / "two_sm90.timing").write_text("of this machine")
    kept.share(model, HERE, settled=0)
    model, there = engines(tmp_path / "b", store)
    assert there.made(model, HERE)
    taken = there.folder(model, HERE)
    assert taken is not None
    assert {path.name: path.read_text() for path in taken.glob("*sm90*")} == {
        "one_sm90.engine": "1",
        "two_sm90.engine": "2",
    }
    writes = store.writes
    there.share(model, HERE, settled=0)
    assert store.writes == writes
    assert there.made(model, {**HERE, "device": "another"}) is False


def test_a_damaged_engine_is_not_taken(tmp_path: Path, store: Counting) -> None:
    model, kept = engines(tmp_path / "a", store)
    folder = kept.folder(model, HERE)
    assert folder is not None
    (folder / "e.engine").write_text("engine")
    kept.share(model, HERE, settled=0)
    store.put(f"models/sha256/{digest(b'engine')}", b"enginX")
    model, there = engines(tmp_path / "b", store)
    assert there.made(model, HERE) is False


def test_engines_in_a_read_only_folder_are_used_where_there_are_some(
    tmp_path: Path, store: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, kept = engines(tmp_path, store)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert kept.folder(model, HERE) is None
    monkeypatch.undo()
    folder = kept.folder(model, HERE)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert kept.folder(model, HERE) == folder
    shutil.copyfile(model, tmp_path / "loose.onnx")
    assert kept.folder(tmp_path / "loose.onnx", HERE) is None

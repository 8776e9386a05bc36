"""The bucket as source of truth: versions, channels, the way back, tampering, tenants, garbage; and the node's copy."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from infra.models.publishing import Publisher, garbage
from shared.errors import (
    ModelAccessDeniedError,
    ModelError,
    ModelInvalidError,
    ModelNotFoundError,
    StoreAccessDeniedError,
    StoreUnavailableError,
    WakeswapError,
)
from shared.models import bucket, index
from shared.models.bucket import ModelBucket
from shared.models.cache import ModelCache
from shared.models.progress import Step, silent
from shared.models.spec import ModelSpec
from shared.rejections import UnknownTenantError
from shared.storage.local import LocalStore
from shared.storage.protocol import ObjectInfo
from tests.unit.models.places import digest, file_spec

CATALOGUED = b"the catalogue's own file"


class Broken(LocalStore):
    """Refuses or fails while `error` is set."""

    error: WakeswapError | None = None
    reads = 0

    def get(self, key: str, *, limit: int | None = None) -> tuple[bytes, ObjectInfo]:
        self.reads += 1
        if self.error:
            raise self.error
        return super().get(key, limit=limit)


@pytest.fixture
def store(tmp_path: Path) -> Broken:
    return Broken(tmp_path / "bucket")


@pytest.fixture
def spec(tmp_path: Path) -> ModelSpec:
    (tmp_path / "catalogued").write_bytes(CATALOGUED)
    file = file_spec(CATALOGUED, f"file:{tmp_path / 'catalogued'}", name="m.bin")
    return ModelSpec(name="swapper", licence="none", files=(file,), role="swapper", adapter="a:B", vendor="v",
                     commercial="yes")  # fmt: skip


def pushed(tmp_path: Path, store: LocalStore, version: str, data: bytes, owner: str = "") -> index.Index:
    path = tmp_path / "m.bin"
    path.write_bytes(data)
    return Publisher(store, owner).push("swapper", version, {"model": path}, silent)


def got(
    tmp_path: Path, store: LocalStore, spec: ModelSpec, tag: str, *, refresh: bool = True, tenant: str = ""
) -> bytes:
    cache = ModelCache(tmp_path / "cache", store, tag=tag, refresh=refresh, tenant=tenant)
    return cache.ensure(spec)["model"].read_bytes()


def test_a_version_is_pushed_once_and_found_by_its_name(tmp_path: Path, store: Broken, spec: ModelSpec) -> None:
    made = pushed(tmp_path, store, "1", b"one")
    assert [info.key for info in store.list("models/").objects] == [
        "models/index/swapper@1.json",
        f"models/sha256/{digest(b'one')}",
    ]
    assert pushed(tmp_path, store, "1", b"one") == made, "again is no error"
    with pytest.raises(ModelInvalidError, match="exists with other files"):
        pushed(tmp_path, store, "1", b"other")
    assert got(tmp_path, store, spec, "1") == b"one"


def test_promotion_moves_a_channel_and_an_older_version_is_the_way_back(
    tmp_path: Path, store: Broken, spec: ModelSpec
) -> None:
    publisher = Publisher(store)
    for version, data in (("1", b"one"), ("2", b"two")):
        pushed(tmp_path, store, version, data)
        publisher.promote("swapper", version, "stable")
        assert got(tmp_path, store, spec, "stable") == data
    publisher.promote("swapper", "1", "stable")
    store.delete(f"models/sha256/{digest(b'one')}")
    assert got(tmp_path, store, spec, "stable") == b"one", "both lie side by side: nothing is fetched"
    assert got(tmp_path, store, spec, "2") == b"two"
    assert len(list((tmp_path / "cache").glob("swapper-*"))) == 2


def test_what_is_not_whole_is_not_promoted(tmp_path: Path, store: Broken) -> None:
    with pytest.raises(ModelNotFoundError, match="no swapper@1"):
        Publisher(store).promote("swapper", "1", "stable")
    pushed(tmp_path, store, "1", b"one")
    store.delete(f"models/sha256/{digest(b'one')}")
    with pytest.raises(ModelNotFoundError, match=r"m\.bin is not in the bucket"):
        Publisher(store).promote("swapper", "1", "stable")


def test_of_two_who_promote_at_once_one_is_told(tmp_path: Path, store: Broken) -> None:
    came: list[str] = []

    class Late(LocalStore):
        """Another promotion comes between the look and the write."""

        def head(self, key: str) -> ObjectInfo:
            info = super().head(key)
            if key.startswith("models/channels/") and not came:
                came.append(key)
                Publisher(store).promote("swapper", "2", "stable")
            return info

    for version, data in (("1", b"one"), ("2", b"two")):
        pushed(tmp_path, store, version, data)
    Publisher(store).promote("swapper", "1", "stable")
    with pytest.raises(ModelError, match="somebody else"):
        Publisher(Late(store.root)).promote("swapper", "1", "stable")
    assert [pointer.version for pointer in Publisher(store).pointers()] == ["2"]


def edited(store: LocalStore, key: str, **values: object) -> None:
    document = json.loads(store.get(key)[0])
    store.put(key, json.dumps({**document, **values}).encode())


def test_tampering_shows(tmp_path: Path, store: Broken, spec: ModelSpec) -> None:
    pushed(tmp_path, store, "1", b"one")
    other = pushed(tmp_path, store, "2", b"two")
    key = "models/index/swapper@1.json"
    files = {part: vars(file) for part, file in other.files.items()}
    for change, said in (
        ({"files": files}, "does not have the digest"),
        ({"files": files, "digest": other.digest}, "does not have the digest"),
        ({"files": {"model": {**files["model"], "extra": 1}}}, "cannot be read"),
        ({"files": "x"}, "cannot be read"),
    ):
        before = store.get(key)[0]
        edited(store, key, **change)
        with pytest.raises(ModelInvalidError, match=said):
            got(tmp_path, store, spec, "1")
        store.put(key, before)
    store.put(key, other.document())
    with pytest.raises(ModelInvalidError, match="is that of swapper@2"):
        got(tmp_path, store, spec, "1")


def test_a_channel_stands_for_one_index_and_no_other(tmp_path: Path, store: Broken, spec: ModelSpec) -> None:
    pushed(tmp_path, store, "1", b"one")
    Publisher(store).promote("swapper", "1", "stable")
    made = index.Index("swapper", "1", {"model": index.IndexedFile("m.bin", 3, digest(b"two"))})
    store.put("models/index/swapper@1.json", made.document())  # sound in itself
    with pytest.raises(ModelInvalidError, match="not the index that stable was promoted to"):
        got(tmp_path, store, spec, "stable")


@pytest.mark.parametrize("change", [{"version": "../x"}, {"index": "0"}, {"name": "other"}, {"more": 1}])
def test_a_pointer_that_is_none_is_refused(
    tmp_path: Path, store: Broken, spec: ModelSpec, change: Mapping[str, object]
) -> None:
    pushed(tmp_path, store, "1", b"one")
    Publisher(store).promote("swapper", "1", "stable")
    edited(store, "models/channels/stable/swapper.json", **change)
    with pytest.raises(ModelInvalidError):
        got(tmp_path, store, spec, "stable")


def test_a_version_without_a_part_that_the_adapter_opens_is_refused(
    tmp_path: Path, store: Broken, spec: ModelSpec
) -> None:
    pushed(tmp_path, store, "1", b"one")
    more = replace(spec, files=(*spec.files, file_spec(b"x", part="weights", name="w.bin")))
    with pytest.raises(ModelInvalidError, match="has the parts model; the catalogue has model, weights"):
        got(tmp_path, store, more, "1")


def test_what_the_bucket_does_not_have_is_the_catalogues(tmp_path: Path, store: Broken, spec: ModelSpec) -> None:
    assert got(tmp_path, store, spec, "stable") == CATALOGUED
    reads = store.reads
    assert got(tmp_path, store, spec, "stable", refresh=False) == CATALOGUED
    assert store.reads == reads, "the node remembers that there is none"


def test_a_function_takes_the_nodes_copy_and_asks_nobody(tmp_path: Path, store: Broken, spec: ModelSpec) -> None:
    for version, data in (("1", b"one"), ("2", b"two")):
        pushed(tmp_path, store, version, data)
    Publisher(store).promote("swapper", "1", "stable")
    got(tmp_path, store, spec, "stable")
    Publisher(store).promote("swapper", "2", "stable")
    reads = store.reads
    assert got(tmp_path, store, spec, "stable", refresh=False) == b"one"
    assert store.reads == reads
    assert got(tmp_path, store, spec, "stable") == b"two"
    got(tmp_path, store, spec, "1")
    reads = store.reads
    assert got(tmp_path, store, spec, "1") == b"one"
    assert store.reads == reads, "a version never changes"


def test_when_the_bucket_cannot_be_asked_the_nodes_copy_stands(tmp_path: Path, store: Broken, spec: ModelSpec) -> None:
    pushed(tmp_path, store, "1", b"one")
    Publisher(store).promote("swapper", "1", "stable")
    got(tmp_path, store, spec, "stable")
    store.error = StoreUnavailableError()
    assert got(tmp_path, store, spec, "stable") == b"one"
    with pytest.raises(ModelError):
        got(tmp_path / "elsewhere", store, spec, "stable")
    store.error = StoreAccessDeniedError()
    with pytest.raises(ModelAccessDeniedError):
        got(tmp_path, store, spec, "stable")
    store.error = None
    (copy,) = (tmp_path / "cache/.tags").rglob("*.json")
    copy.write_text("{")
    assert got(tmp_path, store, spec, "stable", refresh=False) == b"one"


def test_a_tenants_own_model_is_read_through_its_view_only(tmp_path: Path, store: Broken, spec: ModelSpec) -> None:
    pushed(tmp_path, store, "1", b"common")
    own = pushed(tmp_path, store, "1", b"secret", owner="acme")
    assert got(tmp_path, store, spec, "1", tenant="acme") == b"secret"
    assert got(tmp_path, store, spec, "1", tenant="other") == b"common"
    assert got(tmp_path, store, spec, "1") == b"common"
    # whoever knows the digest and names it in an index of their own gets nothing, cached or not
    stolen = replace(own, owner="other", version="2")
    store.put("models/tenants/other/index/swapper@2.json", stolen.document())
    with pytest.raises(ModelNotFoundError):
        got(tmp_path, store, spec, "2", tenant="other")
    for view in (ModelBucket(store), ModelBucket(store, "other")):
        with pytest.raises(ModelNotFoundError):
            view.index("acme", "swapper", "1")


@pytest.mark.parametrize("bad", ["../x", "a/b", "", "x@1", ".hidden"])
def test_names_cannot_leave_their_prefix(store: Broken, bad: str) -> None:
    with pytest.raises(ModelInvalidError):
        bucket.index_key("", bad, "1")
    with pytest.raises(ModelInvalidError):
        bucket.index_key("", "swapper", bad)
    with pytest.raises(ModelInvalidError):
        bucket.channel_key("", "swapper", bad)
    if bad:
        with pytest.raises(UnknownTenantError):
            bucket.base(bad)


def aged(store: LocalStore, days: float) -> None:
    for path in (store.root / "models").rglob("*"):
        os.utime(path, (time.time() - days * 86400,) * 2)


def test_garbage_is_what_no_version_names_and_has_lain_for_a_while(tmp_path: Path, store: Broken) -> None:
    publisher, limit = Publisher(store), time.time() - 86400
    for version, data in (("1", b"one"), ("2", b"two")):
        pushed(tmp_path, store, version, data)
        pushed(tmp_path, store, version, data, owner="acme")
    publisher.promote("swapper", "2", "stable")
    aged(store, 2)
    assert list(garbage(store, limit)) == []
    with pytest.raises(ModelInvalidError, match="is stable"):
        publisher.drop("swapper", "2")
    publisher.drop("swapper", "1")
    assert [info.key for info in garbage(store, limit)] == [f"models/sha256/{digest(b'one')}"]
    Publisher(store, "acme").drop("swapper", "2")
    assert [info.key for info in garbage(store, limit)] == [
        f"models/sha256/{digest(b'one')}",
        f"models/tenants/acme/sha256/{digest(b'two')}",
    ]
    assert list(garbage(store, limit - 2 * 86400)) == [], "too young"
    store.put("models/index/broken@1.json", b"{")
    with pytest.raises(ModelInvalidError):
        list(garbage(store, limit))


def test_an_object_that_was_collected_during_a_push_is_there_in_the_end(tmp_path: Path) -> None:
    class Collected(LocalStore):
        """The collector ran a moment before the index was written."""

        def create(self, key: str, data: bytes, **options: object) -> ObjectInfo:
            self.delete(f"models/sha256/{digest(b'one')}")
            return super().create(key, data)

    store = Collected(tmp_path / "bucket")
    pushed(tmp_path, store, "1", b"one")
    assert store.get(f"models/sha256/{digest(b'one')}")[0] == b"one"


def test_a_push_tells_what_it_does(tmp_path: Path, store: Broken) -> None:
    steps: list[Step] = []
    (tmp_path / "m").write_bytes(b"one")
    for _ in range(2):
        Publisher(store).push("swapper", "1", {"model": tmp_path / "m"}, steps.append)
    assert [(step.action, step.done) for step in steps] == [("push", 0), ("push", 3), ("ready", 3), ("ready", 3)]


def test_objects_that_are_not_what_they_should_be_are_named(tmp_path: Path, store: Broken) -> None:
    (file,) = pushed(tmp_path, store, "1", b"one").files.values()
    assert Publisher(store).state(file) == "ok"
    for wrong in (b"onX", b"one+", b""):
        store.put(f"models/sha256/{file.sha256}", wrong)
        assert Publisher(store).state(file) == "corrupt"
    store.delete(f"models/sha256/{file.sha256}")
    assert Publisher(store).state(file) == "missing"

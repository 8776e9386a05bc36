"""A reference leads to the bytes that were accepted, or nowhere."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from shared.events.payloads import ObjectRef
from shared.rejections import InvalidKeyError, ObjectChangedError, ObjectGoneError
from shared.storage.local import LocalStore
from shared.storage.scoped import TenantStore

KEY = "tenants/demo/inbox/a.jpg"
DATA = b"accepted"
REF = ObjectRef(KEY, hashlib.sha256(DATA).hexdigest(), len(DATA), "image/jpeg")


@pytest.fixture
def ours(tmp_path: Path) -> TenantStore:
    store = LocalStore(tmp_path)
    store.put(KEY, DATA)
    store.put("tenants/acme/inbox/a.jpg", DATA)
    return TenantStore(store, "demo", "job-00000001", "detect")


def test_accepted_bytes(ours: TenantStore) -> None:
    assert ours.load(REF) == DATA


@pytest.mark.parametrize("later", [b"replaced", b"shorter", b"a longer picture", b""])
def test_replaced_since(ours: TenantStore, later: bytes) -> None:
    ours.store.put(KEY, later)
    with pytest.raises(ObjectChangedError):
        ours.load(REF)


def test_deleted_since(ours: TenantStore) -> None:
    ours.store.delete(KEY)
    with pytest.raises(ObjectGoneError):
        ours.load(REF)


@pytest.mark.parametrize("key", ["tenants/acme/inbox/a.jpg", "tenants/demo/../acme/inbox/a.jpg", "system/x", "", "/"])
def test_forged_reference(ours: TenantStore, key: str) -> None:
    with pytest.raises(InvalidKeyError):
        ours.load(ObjectRef(key, REF.digest, REF.size, REF.content_type))


def test_accepted_bytes_as_a_file(ours: TenantStore, tmp_path: Path) -> None:
    ours.fetch(REF, tmp_path / "a.jpg")
    assert (tmp_path / "a.jpg").read_bytes() == DATA


@pytest.mark.parametrize("later", [b"replaced", b"shorter", b"a longer picture", b""])
def test_a_file_replaced_since_is_not_kept(ours: TenantStore, tmp_path: Path, later: bytes) -> None:
    ours.store.put(KEY, later)
    with pytest.raises(ObjectChangedError):
        ours.fetch(REF, tmp_path / "a.jpg")
    assert not (tmp_path / "a.jpg").exists()


def test_a_file_deleted_since_or_of_another_tenant(ours: TenantStore, tmp_path: Path) -> None:
    with pytest.raises(InvalidKeyError):
        ours.fetch(ObjectRef("tenants/acme/inbox/a.jpg", REF.digest, REF.size, REF.content_type), tmp_path / "a.jpg")
    ours.store.delete(KEY)
    with pytest.raises(ObjectGoneError):
        ours.fetch(REF, tmp_path / "a.jpg")
    assert not (tmp_path / "a.jpg").exists()


def test_files_are_kept_as_bytes_are(ours: TenantStore, tmp_path: Path) -> None:
    path = tmp_path / "clip.mkv"
    path.write_bytes(DATA)
    assert ours.save_file("clip.mkv", path, "video/x-matroska") == ours.save("clip.mkv", DATA, "video/x-matroska")
    assert ours.publish_file("a.mp4", path, "video/mp4") == ours.publish("a.mp4", DATA, "video/mp4")
    assert ours.head(ours.publish_file("b.mp4", path, "video/mp4").key).metadata == {"wakeswap-job": "job-00000001"}

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

"""One job's view of the store: every read and write is inside the tenant, or it does not happen.

Stages get this and never the store itself, so a forged reference in an event's data leads nowhere.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ObjectNotFoundError, PayloadTooLargeError
from shared.events.payloads import ObjectRef
from shared.rejections import ObjectChangedError, ObjectGoneError
from shared.storage import keys
from shared.storage.protocol import ObjectInfo, ObjectStore, Page


@dataclass(frozen=True)
class TenantStore:
    """`store` narrowed to `tenant`; `job` and `stage` say where `save` puts things."""

    store: ObjectStore
    tenant: str
    job: str
    stage: str

    def load(self, ref: ObjectRef) -> bytes:
        """The bytes that `ref` names, proven by digest.

        Raises InvalidKeyError (another tenant's key), ObjectGoneError, ObjectChangedError.
        """
        try:
            data, _ = self.store.get(keys.inside(self.tenant, ref.key), limit=ref.size)
        except ObjectNotFoundError:
            raise ObjectGoneError(context={"key": ref.key}) from None
        except PayloadTooLargeError:  # bytes that were never examined are not even read
            raise ObjectChangedError(context={"key": ref.key}) from None
        if hashlib.sha256(data).hexdigest() != ref.digest:
            raise ObjectChangedError(context={"key": ref.key})
        return data

    def fetch(self, ref: ObjectRef, path: Path) -> None:
        """The bytes that `ref` names into a file, proven by digest, never all in memory; raises as `load`."""
        key = keys.inside(self.tenant, ref.key)
        try:
            if self.store.head(key).size != ref.size:  # bytes that were never examined are not even read
                raise ObjectChangedError(context={"key": ref.key})
            self.store.download(key, path)
        except ObjectNotFoundError:
            raise ObjectGoneError(context={"key": ref.key}) from None
        if _digest(path) != ref.digest:
            path.unlink()
            raise ObjectChangedError(context={"key": ref.key})

    def save(self, name: str, data: bytes, content_type: str) -> ObjectRef:
        """Write what this stage made under its own name; the same work twice writes the same bytes again."""
        return self._put(keys.job(self.tenant, self.job, self.stage, name), data, content_type)

    def publish(self, name: str, data: bytes, content_type: str) -> ObjectRef:
        """Write a finished picture among the tenant's results."""
        return self._put(keys.result(self.tenant, name), data, content_type)

    def save_file(self, name: str, path: Path, content_type: str) -> ObjectRef:
        """`save` for a file of any size."""
        return self._upload(keys.job(self.tenant, self.job, self.stage, name), path, content_type)

    def publish_file(self, name: str, path: Path, content_type: str) -> ObjectRef:
        """`publish` for a file of any size."""
        return self._upload(keys.result(self.tenant, name), path, content_type)

    def read(self, key: str, limit: int | None = None) -> tuple[bytes, ObjectInfo]:
        return self.store.get(keys.inside(self.tenant, key), limit=limit)

    def head(self, key: str) -> ObjectInfo:
        return self.store.head(keys.inside(self.tenant, key))

    def list(self, prefix: str, *, cursor: str = "", limit: int = 1000) -> Page:
        """Objects under a prefix of the tenant. Raises InvalidKeyError for any other."""
        keys.inside(self.tenant, prefix + "x")
        return self.store.list(prefix, cursor=cursor, limit=limit)

    def link(self, ref: ObjectRef, seconds: int, filename: str) -> str:
        return self.store.link(keys.inside(self.tenant, ref.key), seconds, filename=filename)

    def _upload(self, key: str, path: Path, content_type: str) -> ObjectRef:
        info = self.store.upload(path, key, content_type=content_type, metadata={"wakeswap-job": self.job})
        return ObjectRef(key, _digest(path), info.size, content_type)

    def _put(self, key: str, data: bytes, content_type: str) -> ObjectRef:
        self.store.put(key, data, content_type=content_type, metadata={"wakeswap-job": self.job})
        return ObjectRef(key, hashlib.sha256(data).hexdigest(), len(data), content_type)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

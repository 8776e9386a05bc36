"""The model bucket, read: the source of truth for every node.

    models/sha256/<digest>                         a file, named by its content
    models/index/<name>@<version>.json             the files of one version of a model; never changed
    models/channels/<channel>/<name>.json          the version that a channel stands for; changed by promotion
    models/derived/<name>.json                     an optimised graph or engines, and what for; see `sharing`
    models/tenants/<tenant>/{sha256,index,channels,derived}/...   the same for models of one tenant

A view is made for one tenant, or for none: it reaches that tenant's models and the common ones, and no key it builds
leads to another tenant's. Never writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.errors import (
    ModelAccessDeniedError,
    ModelError,
    ModelInvalidError,
    ModelNotFoundError,
    ObjectNotFoundError,
    PayloadTooLargeError,
    StorageError,
    StoreAccessDeniedError,
    StoreUnavailableError,
)
from shared.models import index, ranges
from shared.models.index import Index, Pointer
from shared.models.receiving import Received, Report
from shared.storage import keys
from shared.storage.protocol import ObjectStore

PREFIX = "models/"
_LARGEST = 1 << 20
"""Bytes of an index."""


def base(owner: str) -> str:
    """The prefix of one tenant's models, or of the common ones. Raises UnknownTenantError."""
    return f"{PREFIX}tenants/{keys.tenant_name(owner)}/" if owner else PREFIX


def object_key(owner: str, digest: str) -> str:
    return f"{base(owner)}sha256/{digest}"


def index_key(owner: str, name: str, version: str) -> str:
    return f"{base(owner)}index/{index.plain(name, 'model name')}@{index.plain(version, 'version')}.json"


def derived_key(owner: str, name: str) -> str:
    return f"{base(owner)}derived/{index.plain(name, 'name')}.json"


def channel_key(owner: str, name: str, channel: str) -> str:
    return f"{base(owner)}channels/{index.plain(channel, 'channel')}/{index.plain(name, 'model name')}.json"


class ModelBucket:
    """The bucket as `tenant` may see it; as everybody may when it is empty."""

    def __init__(self, store: ObjectStore, tenant: str = "") -> None:
        self._store = store
        self._owners = (tenant, "") if tenant else ("",)

    def resolve(self, name: str, tag: str) -> tuple[Index, bool] | None:
        """The index that `tag`, a channel or a version, names for a model, the tenant's own before the common one.

        With it, whether it is fixed (a version) or may be another one tomorrow. None when there is none. Raises
        ModelInvalidError for an index that is not what it says, ModelAccessDeniedError, ModelError.
        """
        for owner in self._owners:
            if pointer := self.pointer(owner, name, tag):
                found = self.index(owner, name, pointer.version)
                if found is None or found.digest != pointer.index:
                    raise ModelInvalidError(
                        f"{name}@{pointer.version} is not the index that {tag} was promoted to.",
                        context={"kind": "wrong_index"},
                    )
                return found, False
            if found := self.index(owner, name, tag):
                return found, True
        return None

    def pointer(self, owner: str, name: str, channel: str) -> Pointer | None:
        data = self._small(owner, channel_key(owner, name, channel))
        return None if data is None else index.parse_pointer(data, name, channel)

    def index(self, owner: str, name: str, version: str) -> Index | None:
        data = self._small(owner, index_key(owner, name, version))
        return None if data is None else index.parse(data, name, version, owner)

    def fetch(self, owner: str, expected: tuple[str, int], target: Path, *, partial: Path, report: Report) -> Received:
        """Write the object with this digest (and size, 0 if not known) to `target`; `partial`: see `ranges`."""
        self._permit(owner)
        key = object_key(owner, expected[0])
        with said(key):
            return ranges.fetch(self._store, key, expected, target, partial=partial, report=report)

    def _small(self, owner: str, key: str) -> bytes | None:
        self._permit(owner)
        try:
            with said(key):
                return self._store.get(key, limit=_LARGEST)[0]
        except ModelNotFoundError:
            return None

    def _permit(self, owner: str) -> None:
        if owner not in self._owners:
            raise ModelNotFoundError("The model is not one of this tenant's.")


@contextmanager
def said(key: str) -> Iterator[None]:
    """The store's errors as a model's."""
    try:
        yield
    except ObjectNotFoundError as error:
        raise ModelNotFoundError(f"The bucket does not have it ({key}).", context={"key": key}) from error
    except StoreAccessDeniedError as error:
        raise ModelAccessDeniedError(f"The bucket refuses access: {error.detail}", context={"key": key}) from error
    except PayloadTooLargeError as error:
        raise ModelInvalidError(f"{key} is too large.", context={"kind": "oversized"}) from error
    except (StorageError, StoreUnavailableError) as error:
        raise ModelError(f"The bucket is not available: {error.detail}", context={"key": key}) from error

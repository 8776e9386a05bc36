"""Writing the model bucket: files by their digests, then the index that names them, then the channel.

In that order, so that whatever a reader finds named is there. Objects and indexes are never changed; a channel is,
by a conditional write, so of two who promote at once one is told.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared.errors import (
    ModelError,
    ModelInvalidError,
    ModelNotFoundError,
    ObjectNotFoundError,
    PreconditionFailedError,
)
from shared.models import artefact, bucket, index
from shared.models.artefact import Artefact
from shared.models.bucket import said
from shared.models.index import Index, IndexedFile, Pointer
from shared.models.progress import Progress, Step
from shared.models.receiving import measure
from shared.storage.protocol import ObjectInfo, ObjectStore

JSON = "application/json"
_LARGEST = 1 << 20


@dataclass(frozen=True)
class Publisher:
    """On the models of one tenant, or on the common ones when `owner` is empty."""

    store: ObjectStore
    owner: str = ""

    def push(self, name: str, version: str, files: Mapping[str, Path], progress: Progress) -> Index:
        """Store these files, by part, as one version. ModelInvalidError when the version exists with other files."""
        found = {part: measure(path) for part, path in files.items()}
        rows = {part: IndexedFile(files[part].name, got.size, got.sha256) for part, got in found.items()}
        made = Index(name, version, rows, self.owner)
        key = bucket.index_key(self.owner, name, version)
        for part, row in rows.items():
            self._store(name, row, files[part], progress)
        with said(key):
            try:
                self.store.create(key, made.document(), content_type=JSON)
            except PreconditionFailedError:
                if self.index(name, version).digest != made.digest:
                    raise ModelInvalidError(
                        f"{name}@{version} exists with other files; a version never changes.",
                        context={"kind": "wrong_index"},
                    ) from None
        for part, row in rows.items():  # one that was collected while its index did not exist yet
            self._store(name, row, files[part], progress)
        size = sum(row.size for row in rows.values())
        progress(Step(name, "ready", "", size, size))
        return made

    def promote(self, name: str, version: str, channel: str) -> Pointer:
        """Let a channel stand for a version that is whole. The same with an older version is the way back."""
        target = self.index(name, version)
        for row in target.files.values():
            if not self._has(row):
                raise ModelNotFoundError(f"{name}@{version}: {row.name} is not in the bucket.")
        pointer, key = Pointer(name, channel, version, target.digest), bucket.channel_key(self.owner, name, channel)
        with said(key):
            try:
                before = self.store.head(key)
            except ObjectNotFoundError:
                before = None
            try:
                if before is None:
                    self.store.create(key, pointer.document(), content_type=JSON)
                else:
                    self.store.replace(key, pointer.document(), before.etag, content_type=JSON)
            except PreconditionFailedError as error:
                raise ModelError(f"{channel} of {name} was promoted by somebody else meanwhile; look again.") from error
        return pointer

    def drop(self, name: str, version: str) -> None:
        """Forget a version; gc removes what only it named. ModelInvalidError while a channel stands for it."""
        self.index(name, version)
        if named := [
            pointer.channel for pointer in self.pointers() if (pointer.name, pointer.version) == (name, version)
        ]:
            raise ModelInvalidError(f"{name}@{version} is {', '.join(named)}.", context={"kind": "in_use"})
        with said(name):
            self.store.delete(bucket.index_key(self.owner, name, version))

    def index(self, name: str, version: str) -> Index:
        found = bucket.ModelBucket(self.store, self.owner).index(self.owner, name, version)
        if found is None:
            raise ModelNotFoundError(f"The bucket has no {name}@{version}.")
        return found

    def indexes(self) -> Iterator[Index]:
        """Every version. Raises ModelInvalidError for the first index that is not what its name says."""
        for info in listed(self.store, f"{bucket.base(self.owner)}index/"):
            name, _, rest = info.key.rpartition("/")[2].partition("@")
            yield self.index(name, rest.removesuffix(".json"))

    def pointers(self) -> Iterator[Pointer]:
        for info in listed(self.store, f"{bucket.base(self.owner)}channels/"):
            channel, name = info.key.split("/")[-2:]
            with said(info.key):
                data, _ = self.store.get(info.key, limit=_LARGEST)
            yield index.parse_pointer(data, name.removesuffix(".json"), channel)

    def state(self, row: IndexedFile) -> str:
        """ "ok", or what is wrong with the object, read whole."""
        digest, key = hashlib.sha256(), bucket.object_key(self.owner, row.sha256)
        try:
            with said(key):
                self.store.read_range(key, 0, row.size + 1, lambda _, data: digest.update(data))
        except ModelNotFoundError:
            return "missing"
        return "ok" if digest.hexdigest() == row.sha256 else "corrupt"

    def _has(self, row: IndexedFile) -> bool:
        try:
            return self.store.head(bucket.object_key(self.owner, row.sha256)).size == row.size
        except ObjectNotFoundError:
            return False

    def _store(self, name: str, row: IndexedFile, path: Path, progress: Progress) -> None:
        key = bucket.object_key(self.owner, row.sha256)
        with said(key):
            if not self._has(row):
                progress(Step(name, "push", row.name, 0, row.size))
                self.store.upload(path, key)
                progress(Step(name, "push", row.name, row.size, row.size))


def listed(store: ObjectStore, prefix: str) -> Iterator[ObjectInfo]:
    cursor = ""
    while True:
        with said(prefix):
            page = store.list(prefix, cursor=cursor)
        yield from page.objects
        cursor = page.cursor
        if not cursor:
            return


def owners(store: ObjectStore) -> Iterator[str]:
    """Everybody ("") and each tenant who has models of its own."""
    yield ""
    cursor, prefix = "", f"{bucket.PREFIX}tenants/"
    while True:
        with said(prefix):
            page = store.list(prefix, cursor=cursor, delimiter="/")
        yield from (found.removeprefix(prefix).rstrip("/") for found in page.prefixes)
        cursor = page.cursor
        if not cursor:
            return


def garbage(store: ObjectStore, before: float, known: Collection[str] = (), made: float = 0.0) -> Iterator[ObjectInfo]:
    """What nothing names and was written before `before` (seconds since the epoch).

    Files are named by indexes and by what was made of models; that by its model, which an index names or whose digest
    is among the `known` ones of the catalogue, and for no longer than since `made`: a graph for a runtime or a device
    that is gone is missed by nobody, and one that is not is made again. The names are read after the objects were
    listed, so what was named meanwhile is seen. Any index that cannot be read ends it: on doubt nothing is garbage.
    """
    common = {row.sha256 for found in Publisher(store).indexes() for row in found.files.values()}
    for owner in owners(store):
        objects = [info for info in listed(store, f"{bucket.base(owner)}sha256/") if info.modified < before]
        documents = list(listed(store, f"{bucket.base(owner)}derived/"))
        named = {row.sha256 for found in Publisher(store, owner).indexes() for row in found.files.values()}
        kept = [info for info in documents if info.modified >= before]
        for info in documents:
            if info.modified < before:
                found = derived(store, info)
                if found and info.modified >= made and not named.union(common, known).isdisjoint(found.sources):
                    kept.append(info)
                else:
                    yield info
        for found in filter(None, (derived(store, info) for info in kept)):
            named.update(row.sha256 for row in found.files.values())
        yield from (info for info in objects if info.key.rpartition("/")[2] not in named)


def derived(store: ObjectStore, info: ObjectInfo) -> Artefact | None:
    """The document of a graph or of engines; None for one that is gone or is not what it says."""
    try:
        with said(info.key):
            data, _ = store.get(info.key, limit=_LARGEST)
        return artefact.parse(data, info.key.rpartition("/")[2].removesuffix(".json"))
    except (ModelNotFoundError, ModelInvalidError):
        return None

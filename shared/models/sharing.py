"""Optimised graphs and TensorRT engines in the bucket: taken from there rather than made again, put there once made.

    models/derived/<name>.json                     what it was made for, and its files; see `artefact`
    models/tenants/<tenant>/derived/<name>.json    of one tenant's own models
    models/[...]sha256/<digest>                    the files, as all others

The document goes in after the files that it names. That nobody may write here is no error: whoever holds read-only
credentials asks once and is quiet from then on.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from logging import DEBUG, WARNING
from pathlib import Path
from typing import TypeAlias

from shared.errors import (
    ModelAccessDeniedError,
    ModelError,
    ModelInvalidError,
    ModelNotFoundError,
    ObjectNotFoundError,
    PreconditionFailedError,
    StoreAccessDeniedError,
    WakeswapError,
)
from shared.models import artefact, bucket, content
from shared.models.artefact import Artefact
from shared.models.bucket import ModelBucket
from shared.models.index import IndexedFile
from shared.models.made import Made
from shared.models.manifest import Entry
from shared.models.receiving import measure
from shared.storage.protocol import ObjectStore

JSON = "application/json"
_LARGEST = 1 << 20
"""Bytes of a document."""
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)

Partials: TypeAlias = Callable[[str], AbstractContextManager[Path]]

log = logging.getLogger(__name__)


class SharedArtefacts:
    """Of one process."""

    def __init__(self, store: ObjectStore, *, put: bool) -> None:
        """`put`: whether what the bucket lacks is written there."""
        self._store = store
        self._put = put

    def fetch(self, made: Made, folder: Path, partials: Partials, have: Collection[str] = ()) -> Mapping[str, Entry]:
        """Leave the files but those that we `have` in `folder`; what is known of them by name.

        Empty when the bucket has nothing for exactly this. What goes wrong is only logged: then it is made here.
        """
        try:
            found, _ = self._found(made)
            rows = [row for row in found.files.values() if row.name not in have] if found else []
            return {row.name: self._file(made, row, folder / row.name, partials) for row in rows}
        except ModelError as error:
            level = DEBUG if _refused(error) else WARNING
            log.log(level, "not taken from the bucket: derived/%s: %s", made.name, error.detail)
            return {}

    def put(self, made: Made, files: Mapping[str, Path]) -> bool:
        """Whether the bucket has these files, by name, for exactly this now. What goes wrong is only logged."""
        if not self._put:
            return False
        try:
            self._write(made, files)
        except (WakeswapError, OSError) as error:
            self._put = not _refused(error)
            log.log(WARNING if self._put else DEBUG, "not put into the bucket: derived/%s: %s", made.name, error)
            return False
        return True

    def _found(self, made: Made) -> tuple[Artefact | None, str]:
        """The document, None if there is none or one that is not what it says; and its version."""
        try:
            with bucket.said(_key(made)):
                data, info = self._store.get(_key(made), limit=_LARGEST)
        except ModelNotFoundError:
            return None, ""
        try:
            found = artefact.parse(data, made.name)
        except ModelInvalidError as error:
            log.warning("%s", error.detail)
            return None, info.etag
        return (found if found.made_for == made.identity else None), info.etag

    def _file(self, made: Made, row: IndexedFile, target: Path, partials: Partials) -> Entry:
        view = ModelBucket(self._store, made.owner)
        with partials(row.sha256) as partial:
            got = view.fetch(made.owner, (row.sha256, row.size), target, partial=partial, report=lambda *_: None)
        try:
            content.verify(row.name, got, size=row.size, sha256=row.sha256)
        except ModelInvalidError:
            target.unlink(missing_ok=True)
            raise
        return Entry(got.size, got.sha256)

    def _write(self, made: Made, files: Mapping[str, Path]) -> None:
        found, etag = self._found(made)
        if found is not None and set(files) <= set(found.files):
            return
        measured = {name: measure(path) for name, path in files.items()}
        rows = {name: IndexedFile(name, got.size, got.sha256) for name, got in measured.items()}
        self._store_files(made, rows, files)
        whole = Artefact(made.identity, tuple(made.sources), {**(found.files if found else {}), **rows})
        try:
            if etag:
                self._store.replace(_key(made), whole.document(), etag, content_type=JSON)
            else:
                self._store.create(_key(made), whole.document(), content_type=JSON)
        except PreconditionFailedError:  # another node was faster; what it has made serves as well
            return
        self._store_files(made, rows, files)  # one that was collected while no document named it

    def _store_files(self, made: Made, rows: Mapping[str, IndexedFile], files: Mapping[str, Path]) -> None:
        for name, row in rows.items():
            key = bucket.object_key(made.owner, row.sha256)
            try:
                there = self._store.head(key).size == row.size
            except ObjectNotFoundError:
                there = False
            if not there:
                self._store.upload(files[name], key)


def _key(made: Made) -> str:
    return bucket.derived_key(made.owner, made.name)


def _refused(error: Exception) -> bool:
    """Whether we may not write: credentials that only read, a folder that is mounted so."""
    cause = error.__cause__
    return isinstance(error, StoreAccessDeniedError | ModelAccessDeniedError) or (
        isinstance(cause, OSError) and cause.errno in _READ_ONLY
    )

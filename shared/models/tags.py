"""Which version of a model a node uses: what the tag (a channel or a version) named when the node last asked.

    <root>/.tags/<tag>/<tenant or nothing>~<model>.json      {"fixed": ..., "index": <document> or null}

The init step asks the bucket; a function takes the node's copy, so that a wake costs no request. A version never
changes and is asked for once. When the bucket cannot be asked, the copy stands.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

from shared.errors import JsonValue, ModelAccessDeniedError, ModelError, ModelInvalidError
from shared.models import index
from shared.models.bucket import ModelBucket
from shared.models.index import Index
from shared.models.spec import FileSet, ModelSpec

S = TypeVar("S", bound=FileSet)

log = logging.getLogger(__name__)


class Tags:
    """Of one process: what it was once given stays, whatever is promoted meanwhile."""

    def __init__(
        self,
        folder: Path,
        bucket: ModelBucket | None,
        tag: str,
        tenant: str,
        *,
        refresh: bool,
        otherwise: Tags | None = None,
    ) -> None:
        """`refresh`: ask the bucket although the node has a copy of a channel; `otherwise`: for what lacks the tag."""
        self._folder = folder / index.plain(tag, "model tag") if tag else folder
        self._bucket = bucket if tag else None
        self._tag = tag
        self._tenant = tenant
        self._refresh = refresh
        self._otherwise = otherwise
        self._known: dict[str, Index | None] = {}

    def chosen(self, files: S, *, ask: bool) -> S:
        """`files` in the version of the tag, or of the one that stands in for it; else as they are.

        `ask`: whether the bucket may be asked. Raises ModelInvalidError, ModelAccessDeniedError, ModelError.
        """
        if self._bucket is None or not isinstance(files, ModelSpec):
            return files
        if files.name not in self._known:
            copy = self._read(files.name)
            if copy is not None and not (ask and self._refresh and not copy[1]):
                self._known[files.name] = copy[0]
            elif ask:
                self._known[files.name] = self._asked(self._bucket, files.name, copy)
        found = self._known.get(files.name)
        if found:
            return cast(S, found.apply(files))
        return self._otherwise.chosen(files, ask=ask) if self._otherwise else files

    def _asked(self, bucket: ModelBucket, name: str, copy: tuple[Index | None, bool] | None) -> Index | None:
        try:
            found = bucket.resolve(name, self._tag)
        except (ModelInvalidError, ModelAccessDeniedError):
            raise
        except ModelError as error:
            if copy is None:
                raise
            log.warning("%s@%s: the node's copy stands. %s", name, self._tag, error.detail)
            return copy[0]
        self._write(name, found)
        return found[0] if found else None

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._tenant}~{name}.json"

    def _read(self, name: str) -> tuple[Index | None, bool] | None:
        """The copy and whether it is fixed; None when there is no copy that is what it says."""
        try:
            copy = json.loads(self._path(name).read_text(encoding="utf-8"))
            if copy["index"] is None:
                return None, False
            data, owner = json.dumps(copy["index"]).encode(), str(copy["owner"])
            return index.parse(data, name, str(copy["index"]["version"]), owner), bool(copy["fixed"])
        except (OSError, ValueError, KeyError, TypeError, ModelInvalidError):
            return None

    def _write(self, name: str, found: tuple[Index, bool] | None) -> None:
        document: JsonValue = json.loads(found[0].document()) if found else None
        copy = {"fixed": bool(found and found[1]), "owner": found[0].owner if found else "", "index": document}
        path = self._path(name)
        fresh = path.with_name(uuid.uuid4().hex)
        with suppress(OSError):  # a cache that is read-only here
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(json.dumps(copy), encoding="utf-8")
            os.replace(fresh, path)

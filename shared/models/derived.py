"""Optimised graphs in the node's cache: made once, mapped by every later process, never used for anything else.

    <cache>/derived-<digest>/{graph.onnx,weights.bin,made_for.json,manifest.json}

The digest is that of the model's own files and of everything that the graph depends on (shared.vision.graphs): other
bytes, another runtime, processor or GPU have another folder, and `made_for.json` says it again in full. A folder is
renamed into place as a whole. To the cache it is one more set: removed when room is needed, checked with the others.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shared.models import manifest
from shared.models.locks import locked_if_free
from shared.models.manifest import Entry
from shared.models.receiving import measure, sync_folder
from shared.vision.graphs import GRAPH, SMALLEST, WEIGHTS, Facts

LOCKS, STAGING = ".locks", ".tmp"
MADE_FOR = "made_for.json"

log = logging.getLogger(__name__)


class DerivedGraphs:
    """The `shared.vision.graphs.Graphs` of one cache. Any number of threads and processes may use one folder."""

    def __init__(self, root: Path, smallest: int = SMALLEST) -> None:
        """`root`: the cache's; `smallest`: bytes of a model file that is worth it."""
        self.root = root
        self._smallest = smallest

    def find(self, path: Path, facts: Facts) -> Path | None:
        identity = self._identity(path, facts)
        folder = self.root / _name(identity) if identity else None
        if folder is None or not _complete(folder, identity):
            return None
        with suppress(OSError):  # when it was last used, for whoever makes room
            os.utime(folder / manifest.NAME)
        return folder / GRAPH

    def worth(self, path: Path) -> bool:
        """Whether this is a model file, still there and large enough."""
        try:
            return path.suffix == ".onnx" and path.stat().st_size >= self._smallest
        except OSError:
            return False

    @contextmanager
    def keep(self, path: Path, facts: Facts) -> Iterator[Path | None]:
        identity = self._identity(path, facts)
        if not identity or not self._room(path):
            yield None
            return
        name = _name(identity)
        with locked_if_free(self.root / LOCKS / name) as free:
            if not free:
                yield None
                return
            work = self.root / STAGING / name
            shutil.rmtree(work, ignore_errors=True)
            try:
                work.mkdir(parents=True)
                yield work
                self._publish(work, identity)
            finally:
                shutil.rmtree(work, ignore_errors=True)

    def discard(self, graph: Path) -> None:
        shutil.rmtree(graph.parent, ignore_errors=True)

    def _publish(self, work: Path, identity: str) -> None:
        try:
            (work / MADE_FOR).write_text(identity, encoding="utf-8")
            received = {name: measure(work / name) for name in (GRAPH, WEIGHTS, MADE_FOR)}
            entries = {name: Entry(got.size, got.sha256).stamped(work / name) for name, got in received.items()}
            for name in entries:
                _sync(work / name)
            manifest.write(work, _name(identity), entries)
            self.discard(self.root / _name(identity) / GRAPH)  # a damaged one: a complete one would have been found
            work.rename(self.root / _name(identity))
            sync_folder(self.root)
        except OSError as error:
            log.warning("an optimised graph is not kept: %s", error.strerror)

    def _identity(self, path: Path, facts: Facts) -> str:
        """Everything the graph is made from and for; empty for a file that is not, as verified, in a cache."""
        entries = manifest.read(path.parent)
        if entries is None or path.name not in entries or not _as_verified(path, entries[path.name]):
            return ""
        if not self.worth(path):
            return ""
        files = {name: entry.sha256 for name, entry in entries.items()}
        return json.dumps({"model": path.name, "files": files, "facts": dict(facts)}, sort_keys=True)

    def _room(self, path: Path) -> bool:
        try:
            free = shutil.disk_usage(self.root).free
            return os.access(self.root, os.W_OK) and free > 2 * path.stat().st_size
        except OSError:
            return False


def _complete(folder: Path, identity: str) -> bool:
    """Every file has the size and the time that it had when it was made, and it was made for this."""
    entries = manifest.read(folder)
    if entries is None or set(entries) != {GRAPH, WEIGHTS, MADE_FOR}:
        return False
    try:
        made_for = (folder / MADE_FOR).read_text(encoding="utf-8")
    except OSError:
        return False
    return made_for == identity and all(_as_verified(folder / name, entry) for name, entry in entries.items())


def _as_verified(path: Path, entry: Entry) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return found.st_size == entry.size and manifest.as_noted(found.st_mtime_ns, entry.mtime_ns)


def _name(identity: str) -> str:
    return f"derived-{hashlib.sha256(identity.encode()).hexdigest()[:32]}"


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())

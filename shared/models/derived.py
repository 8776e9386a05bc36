"""Optimised graphs in the node's cache: made once, mapped by every later process, never used for anything else.

    <cache>/derived-<name>/{graph.onnx,weights.bin,made_for.json,manifest.json}
    <cache>/derived-<name>/in_bucket               empty: the bucket has it too

The name is the digest of everything that the graph depends on (`made`): other bytes, another runtime, processor or GPU
have another folder, and `made_for.json` says it again in full. A folder is renamed into place as a whole. To the cache
it is one more set: removed when room is needed, checked with the others.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from shared.models import manifest
from shared.models.locks import locked, locked_if_free
from shared.models.made import Made, as_verified, made_of
from shared.models.manifest import Entry
from shared.models.receiving import measure, sync_folder
from shared.models.sharing import SharedArtefacts
from shared.vision.graphs import GRAPH, SMALLEST, WEIGHTS, Facts

LOCKS, STAGING, PARTIAL = ".locks", ".tmp", ".part"
MADE_FOR, IN_BUCKET = "made_for.json", "in_bucket"

log = logging.getLogger(__name__)


class DerivedGraphs:
    """The `shared.vision.graphs.Graphs` of one cache. Any number of threads and processes may use one folder."""

    def __init__(self, root: Path, smallest: int = SMALLEST, shared: SharedArtefacts | None = None) -> None:
        """`root`: the cache's; `smallest`: bytes of a model file that is worth it; `shared`: those of the bucket."""
        self.root = root
        self._smallest = smallest
        self._shared = shared

    def find(self, path: Path, facts: Facts) -> Path | None:
        """The graph that lies here, or else the bucket's, put here; None where there is neither."""
        made = self._made(path, facts)
        if made is None:
            return None
        return self._found(made) or self._fetched(path, made)

    def worth(self, path: Path) -> bool:
        """Whether this is a model file, still there and large enough."""
        try:
            return path.suffix == ".onnx" and path.stat().st_size >= self._smallest
        except OSError:
            return False

    @contextmanager
    def keep(self, path: Path, facts: Facts) -> Iterator[Path | None]:
        made = self._made(path, facts)
        if made is None or not self._room(path):
            yield None
            return
        with self._workplace(made) as work:
            yield work
            if work is not None:
                self._publish(work, made, {})

    def discard(self, graph: Path) -> None:
        shutil.rmtree(graph.parent, ignore_errors=True)

    def share(self, path: Path, facts: Facts) -> None:
        """Put the graph of this model file into the bucket, unless it is known to be there or cannot be put."""
        made = self._made(path, facts)
        graph = self._found(made) if made else None
        if self._shared is None or made is None or graph is None or graph.with_name(IN_BUCKET).exists():
            return
        if self._shared.put(made, {name: graph.with_name(name) for name in (GRAPH, WEIGHTS)}):
            with suppress(OSError):
                graph.with_name(IN_BUCKET).touch()

    def _made(self, path: Path, facts: Facts) -> Made | None:
        return made_of(path, facts) if self.worth(path) else None

    def _found(self, made: Made) -> Path | None:
        folder = self._folder(made)
        if not _complete(folder, made.identity):
            return None
        with suppress(OSError):  # when it was last used, for whoever makes room
            os.utime(folder / manifest.NAME)
        return folder / GRAPH

    def _fetched(self, path: Path, made: Made) -> Path | None:
        if self._shared is None or not self._room(path):
            return None
        try:
            with self._workplace(made) as work:
                entries = self._shared.fetch(made, work, self._partial) if work else {}
                if work is None or set(entries) != {GRAPH, WEIGHTS}:
                    return None
                (work / IN_BUCKET).touch()
                self._publish(work, made, entries)
        except OSError as error:
            log.warning("an optimised graph is not kept: %s", error.strerror)
        return self._found(made)

    @contextmanager
    def _workplace(self, made: Made) -> Iterator[Path | None]:
        """A folder for the one who makes this now, gone afterwards; None when another one is at it."""
        name = self._folder(made).name
        with locked_if_free(self.root / LOCKS / name) as free:
            if not free:
                yield None
                return
            work = self.root / STAGING / name
            shutil.rmtree(work, ignore_errors=True)
            try:
                work.mkdir(parents=True)
                yield work
            finally:
                shutil.rmtree(work, ignore_errors=True)

    @contextmanager
    def _partial(self, digest: str) -> Iterator[Path]:
        with locked(self.root / LOCKS / digest, lambda: None):
            yield self.root / PARTIAL / digest

    def _publish(self, work: Path, made: Made, known: Mapping[str, Entry]) -> None:
        """`known`: of files whose bytes were read a moment ago."""
        folder = self._folder(made)
        try:
            (work / MADE_FOR).write_text(made.identity, encoding="utf-8")
            entries = {name: known.get(name) or _measured(work / name) for name in (GRAPH, WEIGHTS, MADE_FOR)}
            for name in entries:
                _sync(work / name)
            stamped = {name: entry.stamped(work / name) for name, entry in entries.items()}
            manifest.write(work, folder.name, stamped)
            self.discard(folder / GRAPH)  # a damaged one: a complete one would have been found
            work.rename(folder)
            sync_folder(self.root)
        except OSError as error:
            log.warning("an optimised graph is not kept: %s", error.strerror)

    def _folder(self, made: Made) -> Path:
        return self.root / f"derived-{made.name}"

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
    return made_for == identity and all(as_verified(folder / name, entry) for name, entry in entries.items())


def _measured(path: Path) -> Entry:
    got = measure(path)
    return Entry(got.size, got.sha256)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())

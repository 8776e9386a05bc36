"""TensorRT's engines in the node's cache: a folder for each model and everything else that its engines depend on.

    <cache>/engines/<name>/made_for.json           what for, in full; the name is its digest (`made`)
    <cache>/engines/<name>/*.engine, *.profile     written and read by TensorRT itself, one for every range of shapes
    <cache>/engines/<name>/in_bucket               names of those that the bucket has too

onnxruntime names an engine after the graph's structure, so one folder for all models could hand a model the engine of
another. TensorRT adds files while models run: sharing looks at what there is by then.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shared.models.locks import locked
from shared.models.made import Made, made_of
from shared.models.sharing import SharedArtefacts
from shared.vision.graphs import Facts

LOCKS, PARTIAL = ".locks", ".part"
ENGINES = "engines"
MADE_FOR, IN_BUCKET = "made_for.json", "in_bucket"
SUFFIXES = (".engine", ".profile")
SETTLED = 60.0
"""Seconds after which nobody writes to an engine any more; no name tells."""

log = logging.getLogger(__name__)


class KeptEngines:
    """The `shared.vision.graphs.Engines` of one cache. Any number of threads and processes may use one folder."""

    def __init__(self, root: Path, shared: SharedArtefacts | None = None) -> None:
        """`root`: the cache's; `shared`: those of the bucket."""
        self.root = root
        self._shared = shared

    def folder(self, path: Path, facts: Facts) -> Path | None:
        """With the bucket's engines in it, when it is looked for here for the first time."""
        made = made_of(path, facts)
        if made is None:
            return None
        folder = self.root / ENGINES / made.name
        if _says(folder, made):
            return folder
        if not os.access(self.root, os.W_OK):
            return None
        try:
            with locked(self.root / LOCKS / f"{ENGINES}-{made.name}", lambda: None):
                self._begin(folder, made)
        except OSError as error:
            log.warning("engines of %s are not kept: %s", path.name, error.strerror)
            return None
        return folder

    def made(self, path: Path, facts: Facts) -> bool:
        """Whether there is any engine of this model file."""
        folder = self.folder(path, facts)
        return folder is not None and bool(_files(folder))

    def share(self, path: Path, facts: Facts, settled: float = SETTLED) -> None:
        """Put the engines of this model file into the bucket that are not known to be there.

        `settled`: seconds since the last write to one, 0 for who has just made them itself.
        """
        made, folder = made_of(path, facts), self.folder(path, facts)
        if self._shared is None or made is None or folder is None:
            return
        names = _files(folder, time.time() - settled)
        if names - _noted(folder) and self._shared.put(made, {name: folder / name for name in names}):
            _note(folder, names)

    def _begin(self, folder: Path, made: Made) -> None:
        if _says(folder, made):  # by who held the lock before
            return
        folder.mkdir(parents=True, exist_ok=True)
        if self._shared is not None:
            _note(folder, set(self._shared.fetch(made, folder, self._partial)))
        (folder / MADE_FOR).write_text(made.identity, encoding="utf-8")

    @contextmanager
    def _partial(self, digest: str) -> Iterator[Path]:
        with locked(self.root / LOCKS / digest, lambda: None):
            yield self.root / PARTIAL / digest


def _says(folder: Path, made: Made) -> bool:
    with suppress(OSError):
        return (folder / MADE_FOR).read_text(encoding="utf-8") == made.identity
    return False


def _files(folder: Path, before: float = math.inf) -> set[str]:
    found = (path for path in folder.iterdir() if path.suffix in SUFFIXES)
    return {path.name for path in found if path.stat().st_mtime <= before}


def _noted(folder: Path) -> set[str]:
    with suppress(OSError):
        return set((folder / IN_BUCKET).read_text(encoding="utf-8").splitlines())
    return set()


def _note(folder: Path, names: set[str]) -> None:
    with suppress(OSError):
        (folder / IN_BUCKET).write_text("\n".join(sorted(names)), encoding="utf-8")

"""Reading every byte of a cache again: which files are still those that were fetched.

A cache hit trusts the manifest and the file's size and time, for speed; this is the slow look that finds a rotten
disk or a meddling hand. `audit` changes nothing, `heal` fetches again what is bad.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shared.models import manifest
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.manifest import Entry
from shared.models.progress import Progress
from shared.models.receiving import measure
from shared.models.spec import FileSet

_SET = re.compile(r".+-[0-9a-f]{16}")
State = Literal["ok", "corrupt", "missing", "not as pinned"]


@dataclass(frozen=True)
class Finding:
    """What became of one file."""

    folder: str
    """Of the cache: a model's name and its version."""
    file: str
    state: State


def audit(cache: ModelCache, catalog: Catalog) -> Iterator[Finding]:
    """Every file of every complete set in the cache, in the order of their names; a set without manifest is corrupt.

    "not as pinned": whole, but not the download that the catalogue or the lock file names. Raises ConfigError.
    """
    known = {files.folder: files for files in [*catalog.models.values(), *catalog.samples.values()]}
    for folder in sorted(path for path in cache.root.glob("[!.]*") if path.is_dir()):
        entries = manifest.read(folder)
        if entries is None:
            if not _SET.fullmatch(folder.name):
                continue  # engines that TensorRT keeps beside the sets
            yield Finding(folder.name, manifest.NAME, "corrupt")
            continue
        for name, entry in sorted(entries.items()):
            state = _state(folder / name, entry)
            if state == "ok" and folder.name in known and not _as_pinned(cache, known[folder.name], name, entry):
                state = "not as pinned"
            yield Finding(folder.name, name, state)


def heal(cache: ModelCache, catalog: Catalog, progress: Progress) -> tuple[Finding, ...]:
    """Take away every set with a bad file and fetch those again that the catalogue knows; what was found bad.

    A process that has the bad file open keeps it; none opens it anew. Raises ModelError and its kin, ConfigError.
    """
    bad = tuple(finding for finding in audit(cache, catalog) if finding.state != "ok")
    known = {cache.folder(files): files for files in [*catalog.models.values(), *catalog.samples.values()]}
    folders = sorted({finding.folder for finding in bad})
    for folder in folders:
        cache.discard(folder)
    for folder in folders:
        if folder in known:
            cache.ensure(known[folder], progress)
    return bad


def _state(path: Path, entry: Entry) -> State:
    try:
        return "ok" if measure(path).sha256 == entry.sha256 else "corrupt"
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "corrupt"


def _as_pinned(cache: ModelCache, files: FileSet, name: str, entry: Entry) -> bool:
    for file in files.files:
        if file.name == name:
            pinned = cache.lock.pinned(files.name, file)
            got = entry.source_sha256 if file.convert else entry.sha256
            return pinned.sha256 in ("", entry.sha256) and (not got or pinned.download_sha256 in ("", got))
    return False

"""The marker of a complete file set: `manifest.json` in its folder, written before the folder gets its name.

A folder with a manifest that names the asked files, in the sizes and of the times it notes, is a hit: one small read
and one stat a file, never a hash. The digests were checked, or first learned, when the manifest was written. A file
that was touched since is a suspect, to be hashed before it is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from shared.models.spec import FileSet

NAME = "manifest.json"


@dataclass(frozen=True)
class Entry:
    """What is known of one file since it was fetched."""

    size: int
    """Bytes."""
    sha256: str
    source_sha256: str = ""
    """Of the download that the file was made from."""
    source_size: int = 0
    note: str = ""
    """What the conversion had to say."""
    mtime_ns: int = 0
    """When the file was last written, as its disk says; 0: not noted."""

    def stamped(self, path: Path) -> Entry:
        return replace(self, mtime_ns=path.stat().st_mtime_ns)


def document(name: str, entries: Mapping[str, Entry]) -> str:
    """The manifest's text; `entries` by file name."""
    rows = {file: {key: value for key, value in asdict(entry).items() if value} for file, entry in entries.items()}
    return json.dumps({"name": name, "files": rows}, indent=2, sort_keys=True) + "\n"


def read(folder: Path) -> Mapping[str, Entry] | None:
    """The entries by file name; None when there is no manifest that can be read."""
    try:
        rows = json.loads((folder / NAME).read_text(encoding="utf-8"))["files"]
        return {file: Entry(**row) for file, row in rows.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write(folder: Path, name: str, entries: Mapping[str, Entry]) -> None:
    """Put the manifest in place as a whole, on disk for good."""
    fresh = folder / f".{NAME}.{os.getpid()}"
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(document(name, entries))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(folder / NAME)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def lookup(folder: Path, files: FileSet) -> Mapping[str, Path] | None:
    """The paths by part in `folder` when it is complete; None when it is missing, older, damaged or suspect."""
    return paths(folder, files) if suspects(folder, files) == () else None


def suspects(folder: Path, files: FileSet) -> tuple[str, ...] | None:
    """Names of the files that were touched since they were verified; None when the set is not complete."""
    entries = read(folder)
    if entries is None or set(entries) != {file.name for file in files.files}:
        return None
    if any(file.sha256 not in ("", entries[file.name].sha256) for file in files.files):
        return None
    try:
        found = {name: (folder / name).stat() for name in entries}
    except OSError:
        return None
    if any(found[name].st_size != entry.size for name, entry in entries.items()):
        return None
    return tuple(name for name, entry in entries.items() if not as_noted(found[name].st_mtime_ns, entry.mtime_ns))


def as_noted(found: int, noted: int) -> bool:
    """Images and archives keep whole seconds only."""
    return noted in (0, found) or (found % 10**9 == 0 and noted // 10**9 == found // 10**9)


def paths(folder: Path, files: FileSet) -> Mapping[str, Path]:
    return {file.part: folder / file.name for file in files.files}

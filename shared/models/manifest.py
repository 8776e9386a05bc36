"""The marker of a complete file set: `manifest.json` in its folder, written before the folder gets its name.

A folder with a manifest that names the asked files in the sizes it notes is a hit: one small read and one stat a
file, never a hash. The digests were checked, or first learned, when the manifest was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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


def lookup(folder: Path, files: FileSet) -> Mapping[str, Path] | None:
    """The paths by part in `folder` when it is complete; None when it is missing, older or damaged."""
    entries = read(folder)
    if entries is None or set(entries) != {file.name for file in files.files}:
        return None
    if any(file.sha256 not in ("", entries[file.name].sha256) for file in files.files):
        return None
    try:
        if any((folder / name).stat().st_size != entry.size for name, entry in entries.items()):
            return None
    except OSError:
        return None
    return paths(folder, files)


def paths(folder: Path, files: FileSet) -> Mapping[str, Path]:
    return {file.part: folder / file.name for file in files.files}

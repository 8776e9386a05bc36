"""The marker of a complete file set: `manifest.json` in its folder, written before the folder gets its name.

A folder with a manifest that names the asked files in the asked sizes is a hit: one small read and one stat a file,
never a hash. The digests were checked when the manifest was written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from shared.models.spec import FileSet

NAME = "manifest.json"


def document(files: FileSet) -> str:
    entries = {file.name: {"size": file.size, "sha256": file.sha256} for file in files.files}
    return json.dumps({"name": files.name, "files": entries}, indent=2, sort_keys=True) + "\n"


def lookup(folder: Path, files: FileSet) -> Mapping[str, Path] | None:
    """The paths by part in `folder` when it is complete; None when it is missing, older or damaged."""
    try:
        if (folder / NAME).read_text(encoding="utf-8") != document(files):
            return None
        if any((folder / file.name).stat().st_size != file.size for file in files.files):
            return None
    except (OSError, UnicodeDecodeError):
        return None
    return paths(folder, files)


def paths(folder: Path, files: FileSet) -> Mapping[str, Path]:
    return {file.part: folder / file.name for file in files.files}

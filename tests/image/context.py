"""What a build gets to see: the files of the working copy that git would keep, less what .dockerignore leaves out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.image.dockerfile_stages import ROOT


def files() -> list[str]:
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    told = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted(path for path in told.split("\0") if path and (ROOT / path).is_file() and not is_ignored(path))


def is_ignored(path: str, lines: str = (ROOT / ".dockerignore").read_text()) -> bool:
    """The last pattern that fits the path or a folder above it decides."""
    ignored = False
    for line in lines.splitlines():
        pattern = line.strip()
        if pattern and not pattern.startswith("#"):
            parts = re.split(r"(\*\*/|\*)", pattern.removeprefix("!"))
            wild = {"**/": "(?:.*/)?", "*": "[^/]*"}
            expression = "".join(wild.get(part) or re.escape(part) for part in parts)
            if re.fullmatch(f"{expression}(?:/.*)?", path):
                ignored = not pattern.startswith("!")
    return ignored


def copy(folder: Path) -> Path:
    for path in files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, folder / path)
    return folder

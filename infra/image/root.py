"""A folder that becomes `/`: files are copied under their own paths, with the links that lead to them."""

from __future__ import annotations

import os
import shutil
from collections import deque
from pathlib import Path


class Root:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.placed: set[Path] = set()
        """Files of the system, by their real paths; what came with a whole folder is not among them."""
        folder.mkdir(mode=0o755, parents=True)

    def place(self, path: Path) -> None:
        """Copy a file, every link on the way to it, and every folder that is none."""
        here, rest = Path("/"), deque(path.parts[1:])
        while rest:
            part = rest.popleft()
            here = here.parent if part == ".." else here / part
            if here.is_symlink():
                target = here.readlink()
                if not self.at(here).is_symlink():
                    self.at(here).symlink_to(target)
                rest.extendleft(reversed(target.parts[1:] if target.is_absolute() else target.parts))
                here = Path("/") if target.is_absolute() else here.parent
            elif here.is_dir():
                self.at(here).mkdir(mode=0o755, exist_ok=True)
            elif not self.at(here).exists():
                shutil.copy2(here, self.at(here))
                self.placed.add(here)

    def tree(self, folder: Path, *unused: str) -> None:
        """Copy all below a folder but what has one of these names (patterns)."""
        self.place(folder)
        target = self.at(Path(os.path.realpath(folder)))
        shutil.copytree(folder, target, symlinks=True, ignore=shutil.ignore_patterns(*unused), dirs_exist_ok=True)

    def write(self, path: str, text: str) -> None:
        file = self.at(Path(path))
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def at(self, path: Path) -> Path:
        return self.folder / path.relative_to("/")

"""A folder of tenants' files, laid out as Kubernetes mounts a ConfigMap: swapped as a whole by one symbolic link."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import yaml

from shared.tenancy.api_keys import ApiKey


class Mounted:
    """`..data -> ..<number>`, and `<file> -> ..data/<file>` for each, as kubelet's AtomicWriter does it."""

    def __init__(self, root: Path, files: Mapping[str, str] | None = None) -> None:
        self.root = root
        self._version = 0
        root.mkdir(exist_ok=True)
        self.swap(files or {})

    def swap(self, files: Mapping[str, str]) -> None:
        """Let the folder hold exactly these from one moment to the next."""
        self._version += 1
        version = self.root / f"..{self._version}"
        version.mkdir()
        for name, text in files.items():
            (version / name).write_text(text, encoding="utf-8")
        (self.root / "..data_tmp").symlink_to(version.name)
        os.replace(self.root / "..data_tmp", self.root / "..data")
        for name in files:
            if not (self.root / name).is_symlink():
                (self.root / name).symlink_to(f"..data/{name}")
        for link in self.root.iterdir():
            if link.is_symlink() and not link.name.startswith("..") and link.name not in files:
                link.unlink()


def with_keys(*keys: ApiKey, **policy: object) -> str:
    """The text of a tenant's file."""
    entries = [{**vars(key), "scopes": list(key.scopes)} for key in keys]
    return yaml.safe_dump({"policy": policy, "keys": entries})

"""Trust on first use: the digests of downloads that the catalogue does not know, in a TOML file that people can read.

    [models."scrfd"."model"]
    sha256 = "..."
    size = 3291737

Written when such a file was fetched whole for the first time; from then on other bytes are refused, on this machine
or wherever the file is copied to. A digest of the catalogue always wins: then nothing is looked up here.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from shared.errors import ConfigError, ModelError, ModelInvalidError
from shared.models.locks import locked
from shared.models.spec import FileSpec
from shared.models.tables import Table

NAME = "models.lock.toml"

_HEAD = (
    "# Digests of model files as first downloaded, where the catalogue has none. Delete a table to accept new bytes.\n"
)

Pins = Mapping[tuple[str, str], tuple[str, int]]
"""By model and part: SHA-256 and size of the download."""


class LockFile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def pinned(self, model: str, file: FileSpec) -> FileSpec:
        """`file` with the digest that its download must have, as far as it is known. Raises ConfigError."""
        if file.origin or file.download_sha256:
            return file
        sha256, size = self.read().get((model, file.part), ("", 0))
        if file.convert:
            return replace(file, source_sha256=sha256, source_size=size or file.source_size)
        return replace(file, sha256=sha256, size=size or file.size)

    def pin(self, model: str, part: str, sha256: str, size: int) -> None:
        """Note what was downloaded. Raises ModelInvalidError when another process noted other bytes meanwhile."""
        try:
            with locked(self.path.with_name(f".{self.path.name}.lock"), lambda: None):
                pins = dict(self.read())
                if pins.setdefault((model, part), (sha256, size)) != (sha256, size):
                    raise ModelInvalidError(f"{model}: {part} differs from what {self.path.name} has pinned.")
                self._write(pins)
        except OSError as error:
            raise ModelError(
                f"{model}: the digest of {part} cannot be noted in {self.path.name}: {error.strerror}."
            ) from error

    def read(self) -> Pins:
        """Raises ConfigError for a file that is not a lock file; one that is missing pins nothing."""
        try:
            document = tomllib.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(f"{self.path.name} cannot be read: {error.strerror}.") from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"{self.path.name}: {error}") from error
        return {
            (model, part): (row.digest("sha256"), row.size("size"))
            for model, parts in Table(self.path.name, document).tables("models")
            for part, row in ((part, parts.table(part)) for part in parts.names())
        }

    def _write(self, pins: Pins) -> None:
        tables = [
            f"\n[models.{json.dumps(model)}.{json.dumps(part)}]\nsha256 = {json.dumps(sha256)}\nsize = {size}\n"
            for (model, part), (sha256, size) in sorted(pins.items())
        ]
        fresh = self.path.with_name(f".{self.path.name}.new")
        fresh.write_text(_HEAD + "".join(tables), encoding="utf-8")
        os.replace(fresh, self.path)

"""What the catalogue says about one model or one group of sample pictures. Plain frozen data; knows no file system."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from shared.vision.protocols import Parameter

Commercial = Literal["yes", "no", "unknown"]
_OWNED = "~"
"""Between a tenant and its model in the name of a folder; stands in neither's."""


@dataclass(frozen=True)
class FileSpec:
    """One file as the adapter opens it."""

    part: str
    """What the adapter asks for, e.g. "model"."""
    name: str
    """A plain file name, unique within its model."""
    size: int = 0
    """Bytes; 0: not known before it is fetched."""
    sha256: str = ""
    """Of the final file, lower-case hex; empty: not known before."""
    sources: tuple[str, ...] = ()
    """Where it comes from, in order; grammar in `shared.models.sources`."""
    source_sha256: str = ""
    """Of what the sources give, when `convert` makes the final file from it; empty: not known before."""
    source_size: int = 0
    """Bytes of the same; 0: not known before."""
    convert: str = ""
    """"module:function" with (source: Path, target: Path) -> None, or a text for the manifest; or empty."""
    origin: str = ""
    """Another part of the same model that `convert` makes this file from, instead of sources."""

    @property
    def download_sha256(self) -> str:
        """Of what the sources give; empty when it is not known."""
        return self.source_sha256 if self.convert else self.sha256

    @property
    def listing(self) -> str:
        """A line that changes when the file does: its digest, or what it is made from and how."""
        known = self.sha256 or f"{self.source_sha256 or ' '.join(self.sources)} {self.origin} {self.convert}"
        return f"{known}  {self.name}\n"


@dataclass(frozen=True)
class FileSet:
    """Files that belong together: fetched, published and removed as one."""

    name: str
    licence: str
    files: tuple[FileSpec, ...]
    owner: str = field(default="", kw_only=True)
    """The tenant whose own version these files are; empty: everybody's."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names and digests (in `sha256sum` form): one name for exactly these bytes.

        Where a digest is not known before, the way to the file stands for it.
        """
        listing = "".join(file.listing for file in sorted(self.files, key=lambda file: file.name))
        return hashlib.sha256(listing.encode()).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of all files, as far as they are known before."""
        return sum(file.size or file.source_size for file in self.files)

    @property
    def folder(self) -> str:
        """The set's folder in a cache: readable, another one for every version, and never shared between tenants."""
        mine = f"{self.owner}{_OWNED}" if self.owner else ""
        return f"{mine}{self.name}-{self.digest[:16]}"


def owner_of(folder: str) -> str:
    """Whose version of a model a cache's folder with this name holds; empty: everybody's."""
    return folder.rpartition(_OWNED)[0]


@dataclass(frozen=True)
class ModelSpec(FileSet):
    role: str
    adapter: str
    """"module:Class"."""
    vendor: str
    commercial: Commercial
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    uses: Mapping[str, str] = field(default_factory=dict)
    """Other models (or roles) it works with, by what they are to it: `embedder = "arcface_w600k_r50"`."""

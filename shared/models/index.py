"""What a bucket says of one version of a model: which files it has, and by which digests.

    {"name": ..., "version": ..., "files": {<part>: {"name": ..., "size": ..., "sha256": ...}}, "digest": ...}

`digest` is the SHA-256 of the rest as canonical JSON: an index that was cut, mixed up or edited shows. A channel's
pointer carries the index's digest, so that no other index can take its place. Pure text; does no I/O.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from shared.errors import JsonValue, ModelInvalidError
from shared.models.spec import FileSpec, ModelSpec

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class IndexedFile:
    name: str
    size: int
    """Bytes."""
    sha256: str


@dataclass(frozen=True)
class Index:
    name: str
    version: str
    files: Mapping[str, IndexedFile]
    """By part."""
    owner: str = ""
    """The tenant whose model it is; not in the document, which lies in the owner's prefix."""

    @property
    def digest(self) -> str:
        return digest_of(self._body())

    def document(self) -> bytes:
        return json.dumps({**self._body(), "digest": self.digest}, indent=2, sort_keys=True).encode() + b"\n"

    def _body(self) -> dict[str, JsonValue]:
        files: dict[str, JsonValue] = {part: asdict(file) for part, file in self.files.items()}
        return {"name": self.name, "version": self.version, "files": files}

    def apply(self, spec: ModelSpec) -> ModelSpec:
        """`spec` with this version's files. Raises ModelInvalidError when the adapter would miss a part."""
        if set(self.files) != {file.part for file in spec.files}:
            raise ModelInvalidError(
                f"{self.name}@{self.version} has the parts {', '.join(sorted(self.files))}; the catalogue has "
                f"{', '.join(sorted(file.part for file in spec.files))}.",
                context={"kind": "wrong_parts"},
            )
        same = {file.sha256: file for file in spec.files if file.sha256}
        files = tuple(
            same.get(file.sha256) or FileSpec(part=part, name=file.name, size=file.size, sha256=file.sha256)
            for part, file in self.files.items()
        )
        return replace(spec, files=files, owner=self.owner)


@dataclass(frozen=True)
class Pointer:
    """A channel: the version that a name such as `stable` stands for now."""

    name: str
    channel: str
    version: str
    index: str
    """The index's digest."""

    def document(self) -> bytes:
        return json.dumps(asdict(self), indent=2, sort_keys=True).encode() + b"\n"


def plain(text: str, what: str) -> str:
    """`text` when it can stand in a key. Raises ModelInvalidError."""
    if not _NAME.fullmatch(text):
        raise ModelInvalidError(f"{text!r} is not a valid {what}.", context={"kind": "wrong_name"})
    return text


def parse(data: bytes, name: str, version: str, owner: str = "") -> Index:
    """The index that `data` must be. Raises ModelInvalidError (kind "wrong_index") for anything else."""
    try:
        document = json.loads(data)
        carried = document.pop("digest")
        files = {part: IndexedFile(**file) for part, file in document["files"].items()}
        index = Index(document["name"], document["version"], files, owner)
        sound = digest_of(document) == carried and all(is_sound(file) for file in files.values())
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _wrong(name, version, "cannot be read") from error
    if not sound:
        raise _wrong(name, version, "does not have the digest that it carries")
    if (index.name, index.version) != (name, version):
        raise _wrong(name, version, f"is that of {index.name}@{index.version}")
    return index


def parse_pointer(data: bytes, name: str, channel: str) -> Pointer:
    """Raises ModelInvalidError for what is no pointer of this channel."""
    try:
        pointer = Pointer(**json.loads(data))
        sound = bool(_NAME.fullmatch(pointer.version) and _DIGEST.fullmatch(pointer.index))
    except (ValueError, TypeError) as error:
        raise _wrong(name, channel, "cannot be read") from error
    if not sound or (pointer.name, pointer.channel) != (name, channel):
        raise _wrong(name, channel, "is not a pointer of this channel")
    return pointer


def is_sound(file: IndexedFile) -> bool:
    return bool(_NAME.fullmatch(file.name) and _DIGEST.fullmatch(file.sha256)) and file.size > 0


def digest_of(body: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _wrong(name: str, version: str, what: str) -> ModelInvalidError:
    return ModelInvalidError(f"The bucket's index {name}@{version} {what}.", context={"kind": "wrong_index"})

"""What a bucket says of something made from a model for one runtime and device: an optimised graph, TensorRT engines.

    {"made_for": {...}, "sources": [<digest>, ...], "files": {<name>: {"name": ..., "size": ..., "sha256": ...}},
     "digest": ...}

`made_for` is all that it depends on, with the digests of the model's files: whoever reads it compares it in full.
`sources` are the digests of the model's files and of the downloads that they were made from, for the collector of
garbage. Pure text; does no I/O.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from shared.errors import JsonValue, ModelInvalidError
from shared.models import index
from shared.models.index import IndexedFile


def name_of(identity: str) -> str:
    """The name under which something made for `identity` (canonical JSON) is kept, here and in the bucket."""
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Artefact:
    made_for: str
    """Canonical JSON."""
    sources: tuple[str, ...]
    files: Mapping[str, IndexedFile]
    """By file name."""

    def document(self) -> bytes:
        files: dict[str, JsonValue] = {name: asdict(file) for name, file in self.files.items()}
        body: dict[str, JsonValue] = {"made_for": json.loads(self.made_for), "sources": [*self.sources], "files": files}
        return json.dumps({**body, "digest": index.digest_of(body)}, indent=2, sort_keys=True).encode() + b"\n"


def parse(data: bytes, name: str) -> Artefact:
    """Raises ModelInvalidError (kind "wrong_index") for what is not the document of that name."""
    try:
        document = json.loads(data)
        carried = document.pop("digest")
        files = {file: IndexedFile(**row) for file, row in document["files"].items()}
        made_for = json.dumps(document["made_for"], sort_keys=True)
        found = Artefact(made_for, tuple(map(str, document["sources"])), files)
        sound = index.digest_of(document) == carried and all(
            index.is_sound(row) and row.name == file for file, row in files.items()
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _wrong(name, "cannot be read") from error
    if not sound or name_of(made_for) != name:
        raise _wrong(name, "is not what it says")
    return found


def _wrong(name: str, what: str) -> ModelInvalidError:
    return ModelInvalidError(f"The bucket's derived/{name} {what}.", context={"kind": "wrong_index"})

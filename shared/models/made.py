"""What makes one optimised graph, or one set of TensorRT engines, another: the model's own bytes, the runtime, the
device and the precision, written out as a text that is compared in full and whose digest is the thing's name.

Knows the cache's manifests, no runtime and no bucket.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared.models import artefact, manifest
from shared.models.manifest import Entry
from shared.models.spec import owner_of
from shared.vision.graphs import Facts


@dataclass(frozen=True)
class Made:
    identity: str
    """Everything it depends on, as canonical JSON."""
    owner: str = ""
    """The tenant from whose own version of the model it is made; empty: everybody's."""
    sources: Sequence[str] = ()
    """Digests of the model's files, and of the downloads that they were made from."""

    @property
    def name(self) -> str:
        return artefact.name_of(self.identity)


def made_of(path: Path, facts: Facts) -> Made | None:
    """What is made of the model file `path` for these facts; None of a file that is not, as verified, in a cache."""
    entries = manifest.read(path.parent)
    if entries is None or path.name not in entries or not as_verified(path, entries[path.name]):
        return None
    files = {name: entry.sha256 for name, entry in entries.items()}
    identity = json.dumps({"model": path.name, "files": files, "facts": dict(facts)}, sort_keys=True)
    sources = sorted({digest for entry in entries.values() for digest in (entry.sha256, entry.source_sha256) if digest})
    return Made(identity, owner_of(path.parent.name), tuple(sources))


def as_verified(path: Path, entry: Entry) -> bool:
    """Whether the file has the size and the time that were noted when its bytes were last read."""
    try:
        found = path.stat()
    except OSError:
        return False
    return found.st_size == entry.size and manifest.as_noted(found.st_mtime_ns, entry.mtime_ns)

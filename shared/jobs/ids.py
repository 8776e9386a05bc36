"""Ids that the same cause always gets again, so that repeats meet the record of the first time. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from shared.storage.protocol import ObjectInfo

_NAMESPACE = uuid.UUID("0a3d7f53-5f0e-5b61-8f0c-6d3f4f4e9b1d")


def of_uploads(tenant: str, unit: str, found: Mapping[str, ObjectInfo]) -> str:
    """The job of the objects that lie there now: an object written again makes another job."""
    versions = (f"{key}\n{info.etag}\n{info.modified!r}" for key, info in sorted(found.items()))
    return _uuid("upload", tenant, unit, *versions)


def of_request(tenant: str, idempotency_key: str) -> str:
    return _uuid("request", tenant, idempotency_key)


def of_refused(tenant: str, key: str, *facts: str) -> str:
    """What was refused before it could become a job: `facts` tell one upload of the key from the next."""
    return _uuid("refused", tenant, key, *facts)


def of_batch(source: str, minute: str) -> str:
    return _uuid("batch", source, minute)


def fresh() -> str:
    """122 random bits."""
    return str(uuid.uuid4())


def _uuid(*parts: str) -> str:
    """Lengths keep parts apart whatever they hold."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return str(uuid.uuid5(_NAMESPACE, text))

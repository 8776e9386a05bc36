"""Whether anything of a job is left, told from the store and the audit. Only reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from infra.retention import due
from infra.retention.folders import folder, taken
from infra.retention.plans import every
from shared import records as text
from shared.audit.lines import DELETED, RETENTION, Entry
from shared.audit.trail import Trail
from shared.errors import ObjectNotFoundError
from shared.jobs import line
from shared.jobs.records import timestamp
from shared.storage import keys
from shared.storage.protocol import ObjectInfo, ObjectStore

PICTURE, RECORD, UPLOAD, RESULT, EVENT = "picture", "record", "upload", "result", "event"


@dataclass(frozen=True)
class Left:
    """One object that is still there."""

    kind: str
    """`picture` (what was sent, or made of it), `upload`, `result`, `record`, or `event` (kept, waiting or being
    deleted)."""
    key: str


@dataclass(frozen=True)
class Proof:
    tenant: str
    job: str
    known: tuple[Entry, ...]
    """What the audit has of the job."""
    left: tuple[Left, ...]

    @property
    def deleted(self) -> tuple[Entry, ...]:
        return tuple(one for one in self.known if (one.what, one.decision) == (RETENTION, DELETED))

    @property
    def holds(self) -> bool:
        """There was such a job, and nothing of it is left."""
        return bool(self.known) and not self.left


def prove(store: ObjectStore, trail: Trail, tenant: str, job: str) -> Proof:
    """Raises InvalidKeyError for what can be no job's id."""
    known = tuple(trail.of_job(tenant, job))
    return Proof(tenant, job, known, tuple(_left(store, trail, tenant, job, known)))


def _left(store: ObjectStore, trail: Trail, tenant: str, job: str, known: tuple[Entry, ...]) -> Iterator[Left]:
    found = folder(store, tenant, job)
    for info in found.objects:
        yield Left(RECORD if due.is_record(found.name(info)) else PICTURE, info.key)
    for info in every(store, keys.result(tenant, f"{job}.")):
        yield Left(RESULT, info.key)
    again = (info.key for info in every(store, keys.inbox(tenant)) if _is_deleted(info, trail, known))
    for key in sorted({info.key for info in taken(store, tenant, job)} | {*again}):
        yield Left(UPLOAD, key)
    for key in _events(store, tenant, job):
        yield Left(EVENT, key)


def _is_deleted(info: ObjectInfo, trail: Trail, known: tuple[Entry, ...]) -> bool:
    """Whether the audit says that this very object is gone; one written since under the same name is another."""
    mark, when = trail.marks.name(info.key), timestamp(info.modified)
    for entry in known:
        names = entry.facts.get("names", [])
        if mark and isinstance(names, list) and mark in names and when <= str(entry.facts.get("planned", "")):
            return True
    return False


def _events(store: ObjectStore, tenant: str, job: str) -> Iterator[str]:
    """Places in the line, reviews, deletions under way, and dead letters, which are read to tell."""
    for info in every(store, keys.deletion(tenant, f"{job}.")):
        yield info.key
    for priority in line.PRIORITIES:
        yield from (info.key for info in every(store, keys.line(priority, tenant)) if f".{job}.json" in info.key)
    yield from (info.key for info in every(store, keys.system("review", f"{tenant}.{job}.")))
    for info in every(store, keys.system("dead-letter") + "/"):
        with suppress(ObjectNotFoundError, ValueError):
            event = text.loads(store.get(info.key)[0])
            if isinstance(event, dict) and (event.get("tenantid"), event.get("subject")) == (tenant, job):
                yield info.key

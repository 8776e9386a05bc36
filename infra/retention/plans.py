"""Deletions that a crash cannot cut in two: planned in the store, carried out, put on record, and then forgotten.

    system/retention/<tenant>/<name>.plan.json

A plan is written before the first object goes and removed after the audit knows of the last, so whoever comes next
finishes it, and two at once carry out the same one. An upload is deleted in the version that was planned; whoever
writes it anew within the instant between look and deletion loses it, and its job is rejected. Knows the store and the
audit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from logging import getLogger

from infra.retention.due import INPUTS, UPLOADS
from shared import records
from shared.audit.lines import DELETED, RETENTION, Line
from shared.audit.trail import Trail
from shared.errors import JsonValue, ObjectNotFoundError, PreconditionFailedError
from shared.jobs.records import CANCELLED, JOB, JSON, OUTCOME
from shared.storage import keys
from shared.storage.protocol import ObjectInfo, ObjectStore

log = getLogger(__name__)

BY = "retention"
_SUFFIX = ".plan.json"
_ENDS = (OUTCOME, CANCELLED)
_VERSIONS = (INPUTS, UPLOADS)
"""Deleted only as they were planned: a name in the inbox may be used again."""


@dataclass(frozen=True)
class Item:
    kind: str
    key: str
    etag: str
    size: int
    """Bytes."""


@dataclass(frozen=True)
class Plan:
    tenant: str
    job: str
    """Empty for what belongs to no job."""
    at: str
    """When it was made: RFC 3339, UTC."""
    items: tuple[Item, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.kind for item in self.items))

    @property
    def key(self) -> str:
        return keys.deletion(self.tenant, f"{self.job or '_'.join(('_', *self.kinds))}{_SUFFIX}")


def items(kind: str, found: list[ObjectInfo]) -> list[Item]:
    return [Item(kind, info.key, info.etag, info.size) for info in found]


def carry_out(store: ObjectStore, trail: Trail, plan: Plan) -> Plan:
    """Delete what is planned, or first what another has planned of the same job; that plan is returned."""
    while not _note(store, plan):
        found = _read(store, plan.key)
        if found is not None:
            finish(store, trail, found)
            return found
    if not any(_is_there(store, item) for item in plan.items):  # another has carried it out since our look
        store.delete(plan.key)
        return replace(plan, items=())
    finish(store, trail, plan)
    return plan


def finish(store: ObjectStore, trail: Trail, plan: Plan) -> None:
    """Carry out a plan that stands in the store; doing it twice, or two at once, does the same."""
    for item in sorted(plan.items, key=_order):
        if item.kind not in _VERSIONS or _is_there(store, item):
            store.delete(item.key)
    digest = hashlib.sha256(f"{plan.at}\n{plan.kinds}".encode()).hexdigest()[:16]
    trail.write(plan.tenant, plan.job, f"deleted.{digest}", plan.at, _lines(plan, trail))
    store.delete(plan.key)


def unfinished(store: ObjectStore, tenant: str) -> Iterator[Plan]:
    """What a crash has left, or another run is at."""
    for info in every(store, keys.deletion(tenant)):
        found = _read(store, info.key) if info.key.endswith(_SUFFIX) else None
        if found is not None:
            yield found


def every(store: ObjectStore, prefix: str) -> Iterator[ObjectInfo]:
    cursor = ""
    while True:
        page = store.list(prefix, cursor=cursor)
        yield from page.objects
        if not (cursor := page.cursor):
            return


def _note(store: ObjectStore, plan: Plan) -> bool:
    try:
        store.create(plan.key, records.dumps(records.write(plan)), content_type=JSON)
    except PreconditionFailedError:
        return False
    return True


def _read(store: ObjectStore, key: str) -> Plan | None:
    """None when it was carried out meanwhile; or when nobody can read it, and what is still there is planned anew."""
    try:
        return records.read(Plan, records.loads(store.get(key)[0]))
    except ObjectNotFoundError:
        return None
    except ValueError:
        log.exception("the plan of a deletion cannot be read, and is made anew")
        store.delete(key)
        return None


def _is_there(store: ObjectStore, item: Item) -> bool:
    with suppress(ObjectNotFoundError):
        return store.head(item.key).etag == item.etag
    return False


def _order(item: Item) -> int:
    """The job's record goes first and its end last, so that nobody ever sees a job that has not ended."""
    name = item.key.rpartition("/")[2]
    return 0 if name == JOB else 2 if name in _ENDS else 1


def _lines(plan: Plan, trail: Trail) -> Iterator[Line]:
    for kind in plan.kinds:
        mine = [item for item in plan.items if item.kind == kind]
        facts: dict[str, JsonValue] = {
            "planned": plan.at,
            "objects": len(mine),
            "bytes": sum(item.size for item in mine),
        }
        if trail.marks:
            facts["names"] = [trail.marks.name(item.key) for item in mine]
        yield Line(RETENTION, DELETED, BY, kind, facts)

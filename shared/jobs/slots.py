"""A tenant's slots and counts in the store: one object per tenant, changed by conditional writes only.

Every change is decided over the record as it is and written over that version alone, so of any number of requests
exactly as many pass as there are slots, a job never has two, and what is given back twice is given back once. A
crashed job's slot returns when its lease ends. Knows the store; the decisions are `shared.tenancy.quota`'s.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from logging import getLogger

from shared import records
from shared.errors import JsonValue, ObjectNotFoundError, PreconditionFailedError, QuotaExceededError, TransientError
from shared.jobs.records import JSON
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.tenancy import quota
from shared.tenancy.quota import Slot, Usage
from shared.tenancy.tenant import Tenant

log = getLogger(__name__)

PATIENCE = 60.0
"""Seconds in which a change must find its turn; each turn is one write, and at least one writer of each gets it."""
_PAUSE = 0.05
"""Seconds, at most, before the second try; doubled for each further one up to twenty times that."""


@dataclass(frozen=True)
class Taken:
    slot: Slot
    fresh: bool
    """False when the job had the slot before."""


def take(store: ObjectStore, tenant: Tenant, job: str, *, batch: bool, now: float, seconds: float) -> Taken:
    """The job's slot, for `seconds` unless it is renewed. Raises QuotaExceededError and leaves nothing behind."""
    fresh = False

    def decide(usage: Usage) -> Usage:
        nonlocal fresh
        fresh = quota.held(usage, job) is None
        limit = quota.broken(usage, tenant.policy, batch=batch, now=now) if fresh else None
        if limit is not None:
            context: dict[str, JsonValue] = {"limit": limit.name, "value": limit.value}
            raise QuotaExceededError(_SAID[limit.name], context=context, retry_after=limit.wait)
        return quota.take(usage, job, batch=batch, now=now, seconds=seconds)

    slot = quota.held(_change(store, tenant.name, decide), job)
    assert slot is not None
    return Taken(slot, fresh)


def has_room(store: ObjectStore, tenant: Tenant, *, batch: bool, now: float) -> bool:
    """Whether one more job could be taken in at this moment."""
    return quota.broken(_read(store, tenant.name)[0], tenant.policy, batch=batch, now=now) is None


def holds(store: ObjectStore, tenant: str, job: str) -> bool:
    """Whether the job has a slot that nobody else has got."""
    return quota.held(_read(store, tenant)[0], job) is not None


def renew(store: ObjectStore, tenant: str, job: str, *, now: float, seconds: float) -> float:
    """Until when the slot is the job's now, in seconds since the epoch; 0 when it has none (any more).

    Writes only when less than half of the lease is left.
    """
    usage = _change(store, tenant, lambda usage: quota.renew(usage, job, now=now, seconds=seconds))
    slot = quota.held(usage, job)
    return slot.expires if slot else 0.0


def release(store: ObjectStore, tenant: str, job: str) -> None:
    """The job has ended. No error and no write when it has no slot."""
    _change(store, tenant, lambda usage: quota.release(usage, job))


def give_back(store: ObjectStore, tenant: str, job: str) -> None:
    """The job never began: its slot is free and it is not counted."""
    _change(store, tenant, lambda usage: quota.give_back(usage, job))


class Keeper:
    """Keeps a job's slot for as long as it is called every now and then; most calls cost nothing."""

    def __init__(self, store: ObjectStore, tenant: str, job: str, seconds: float) -> None:
        self._store, self._tenant, self._job, self._seconds = store, tenant, job, seconds
        self._due = 0.0

    def __call__(self) -> None:
        now = time.time()
        if now < self._due:
            return
        expires = renew(self._store, self._tenant, self._job, now=now, seconds=self._seconds)
        self._due = max(expires - self._seconds / 2, now + self._seconds / 2)


_SAID = {
    "max_concurrent": "As many jobs as allowed are under way.",
    "max_batch": "As many jobs of batches as allowed are under way.",
    "jobs_per_minute": "As many jobs as allowed were taken in within this minute.",
    "jobs_per_day": "As many jobs as allowed were taken in within this day.",
}


def _change(store: ObjectStore, tenant: str, decide: Callable[[Usage], Usage]) -> Usage:
    """The usage as it is after `decide`, which may be asked more than once and may refuse by raising."""
    key, pause, ends = keys.slots(tenant), _PAUSE, time.monotonic() + PATIENCE
    while True:
        usage, etag = _read(store, tenant)
        changed = decide(usage)
        if changed == usage:
            return usage
        data = records.dumps(records.write(changed))
        try:
            if etag:
                store.replace(key, data, etag, content_type=JSON)
            else:
                store.create(key, data, content_type=JSON)
        except PreconditionFailedError:
            if time.monotonic() > ends:
                raise TransientError("Too many are at this tenant's quota at once.") from None
            time.sleep(random.uniform(0, pause))  # noqa: S311 - spreads writers, guards nothing
            pause = min(2 * pause, 20 * _PAUSE)
        else:
            return changed


def _read(store: ObjectStore, tenant: str) -> tuple[Usage, str]:
    """The usage and its ETag, empty when there is no record yet; one that nobody can read counts as nothing used."""
    try:
        data, info = store.get(keys.slots(tenant))
    except ObjectNotFoundError:
        return Usage(), ""
    try:
        return records.read(Usage, records.loads(data)), info.etag
    except ValueError:
        log.exception("the record of a tenant's slots cannot be read, and begins anew", extra={"tenant": tenant})
        return Usage(), info.etag

"""The line: jobs of uploads and batches that wait for a slot, and how they are started when there is one.

Each waiting job is one object whose key says its place; interactive jobs come before those of batches, a tenant's in
the order in which they came, tenants in turn. A job is started in this order of steps: slot taken, event published,
place deleted. So a crash between two of them leaves it in the line with its slot, and whoever comes next publishes
the same event again, under the same id. Knows the store, the tenants and the slots.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from shared import records as text
from shared.context import FrontContext
from shared.errors import ObjectNotFoundError, PreconditionFailedError, QuotaExceededError, TenantNotReadyError
from shared.events.event import Event
from shared.events.payloads import Job
from shared.jobs import records, slots
from shared.jobs.accepted import Accepted
from shared.jobs.making import Made
from shared.jobs.records import CANCELLED, JSON, OUTCOME, JobRecord
from shared.rejections import InvalidKeyError, UnknownTenantError
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.telemetry import spans
from shared.tenancy.tenant import Tenant

INTERACTIVE, BATCH = PRIORITIES = ("interactive", "batch")
"""In the order in which they are started."""
STARTING_SECONDS = 15.0
"""How long whoever took the slot of a waiting job has to publish it before another may."""
PING = "dev.knative.sources.ping"
TICK = {"start": "waiting"}
"""The data of the PingSource that strikes every ten minutes: more often, and intake would never sleep."""
LOOK_SECONDS = 30.0
"""How often a process tells how many wait, at most, as jobs end."""
_PAGE = 50
_MOST = 5000
"""Waiting jobs that are counted; more look like so many."""


def admit(ctx: FrontContext, tenant: Tenant, made: Made) -> Iterator[Accepted]:
    """What an upload leads to now: its own event, or, when it has to wait, those of the jobs whose turn it is."""
    job = made.accepted.payload
    if not isinstance(job, Job):
        yield made.accepted
    elif made.fresh or not _is_over(ctx.store, tenant.name, job.job):
        if _may_begin(ctx, tenant, job, made.fresh):
            yield made.accepted
        else:
            now = spans.current()
            _join(ctx.store, tenant, job, str(now or ""))
            yield from start(ctx, tenant)


def queue(ctx: FrontContext, tenant: Tenant, made: Made) -> Iterator[Accepted]:
    """What an item of a batch leads to now: its job waits until the clock, or the end of another job, starts it."""
    job = made.accepted.payload
    if not isinstance(job, Job):
        yield made.accepted
    elif made.fresh or not (slots.holds(ctx.store, tenant.name, job.job) or _is_over(ctx.store, tenant.name, job.job)):
        _join(ctx.store, tenant, job)


def start(ctx: FrontContext, tenant: Tenant) -> Iterator[Accepted]:
    """The events of the tenant's waiting jobs that may begin now."""
    for priority in PRIORITIES:
        yield from _start(ctx, tenant, priority)


def ended(ctx: FrontContext, tenant: str, job: str) -> Iterator[Accepted]:
    """A job of the tenant has ended, others may begin. Whoever ended it has released its slot, unless a crash came."""
    try:
        owner = ctx.tenants.get(tenant)
        over = _is_over(ctx.store, owner.name, job)
    except (UnknownTenantError, InvalidKeyError) as error:
        ctx.log.warning("the end of a job that is none: %s", error)
        return
    if over:
        slots.release(ctx.store, owner.name, job)
    yield from start(ctx, owner)
    if _PACE.may_look(ctx.now()):
        _tell(ctx)


def tick(ctx: FrontContext) -> Iterator[Accepted]:
    """Start whatever may begin, for all tenants in turn: slots whose leases ran out tell nobody, nor does a new minute.

    Batches that begin are spread over `ctx.spread` seconds: clocks of all tenants strike in the same second.
    """
    _tell(ctx)
    yield from _in_turn([_start(ctx, tenant, INTERACTIVE) for tenant in _waiting(ctx, INTERACTIVE)])
    now = ctx.now()
    ready = [tenant for tenant in _waiting(ctx, BATCH) if slots.has_room(ctx.store, tenant, batch=True, now=now)]
    for index, tenant in enumerate(sorted(ready, key=lambda tenant: _shuffled(tenant.name, now))):
        if index and not ctx.pause(ctx.spread / len(ready)):
            return  # the next tick goes on
        yield from _start(ctx, tenant, BATCH)


def pace(ctx: FrontContext) -> Iterator[Accepted]:
    """A batch is in the line: begin it, spread with those of others, without waiting for the clock.

    One thread of a process paces; a batch that comes meanwhile is found by its next look, so that the threads of an
    intake that many clocks strike at once stay free for callers.
    """
    _PACE.asked.set()
    while _PACE.asked.is_set() and _PACE.lock.acquire(blocking=False):
        try:
            _PACE.asked.clear()
            yield from tick(ctx)
        finally:
            _PACE.lock.release()


def is_tick(event: Event) -> bool:
    """Whether a PingSource asks to start what waits, rather than for a batch."""
    return event.type == PING and event.data == TICK


def is_waiting(store: ObjectStore, tenant: str, job: Job) -> bool:
    try:
        store.head(_place(tenant, job))
    except ObjectNotFoundError:
        return False
    return True


def withdraw(store: ObjectStore, tenant: str, job_id: str) -> None:
    """A cancelled job leaves the line, or gives its slot to others."""
    record = records.find(store, tenant, job_id)
    if record is not None:
        store.delete(_place(tenant, record.job))
    slots.release(store, tenant, job_id)


def _may_begin(ctx: FrontContext, tenant: Tenant, job: Job, fresh: bool) -> bool:
    """Whether a job has a slot, now or from before a crash or a repeat. None overtakes those that wait already."""
    if not fresh and slots.holds(ctx.store, tenant.name, job.job):
        return True
    if ctx.store.list(keys.line(job.priority, tenant.name), limit=1).objects:
        return False
    try:
        _take(ctx, tenant, job)
    except QuotaExceededError as error:
        limit = str(error.context["limit"])
        ctx.metrics.count("jobs_queued", limit=limit, tenant_class=tenant.policy.isolation)
        return False
    return True


def _take(ctx: FrontContext, tenant: Tenant, job: Job) -> slots.Taken:
    batch = job.priority == BATCH
    return slots.take(ctx.store, tenant, job.job, batch=batch, now=ctx.now(), seconds=ctx.slot_seconds)


def _join(store: ObjectStore, tenant: Tenant, job: Job, traceparent: str = "") -> None:
    record = JobRecord(job, traceparent=traceparent)
    with suppress(PreconditionFailedError):  # it waits already
        store.create(_place(tenant.name, job), text.dumps(text.write(record)), content_type=JSON)


def _start(ctx: FrontContext, tenant: Tenant, priority: str) -> Iterator[Accepted]:
    for key in _places(ctx.store, keys.line(priority, tenant.name)):
        record = _record(ctx, tenant, key)
        if record is None:
            continue
        job = record.job
        try:
            taken = _take(ctx, tenant, job)
        except QuotaExceededError:
            return
        if _is_over(ctx.store, tenant.name, job.job):
            (slots.give_back if taken.fresh else slots.release)(ctx.store, tenant.name, job.job)
        elif not taken.fresh and ctx.now() - taken.slot.taken < STARTING_SECONDS:
            continue  # another process is about to publish it
        else:
            yield Accepted(tenant.name, job, cause=job.job, waited=True, traceparent=record.traceparent)
        ctx.store.delete(key)


def _record(ctx: FrontContext, tenant: Tenant, key: str) -> JobRecord | None:
    """The job that waits at `key`; None when it was started meanwhile, or when nobody can read it, which is told."""
    try:
        data, _ = ctx.store.get(key)
    except ObjectNotFoundError:
        return None
    found = None
    try:
        return text.read(JobRecord, text.loads(data))
    except ValueError:
        with suppress(InvalidKeyError):  # nothing of ours
            found = records.find(ctx.store, tenant.name, key.removesuffix(".json").rpartition(".")[2])
    if found is None:
        ctx.log.error("a waiting job cannot be read and is given up: %s", key)
        ctx.store.delete(key)
    return found


def _is_over(store: ObjectStore, tenant: str, job: str) -> bool:
    return records.exists(store, tenant, job, OUTCOME) or records.exists(store, tenant, job, CANCELLED)


class _Pace:
    """What the threads of this process share."""

    def __init__(self) -> None:
        self.lock, self.asked = threading.Lock(), threading.Event()
        self._looked = -math.inf

    def may_look(self, now: float) -> bool:
        """Whether the last look is old enough, or of a clock that was set back; it is as new as can be then."""
        if 0 <= now - self._looked < LOOK_SECONDS:
            return False
        self._looked = now
        return True


_PACE = _Pace()


def _tell(ctx: FrontContext) -> None:
    """How many wait, for who watches: a look at the line is cheap, as long as the line is short."""
    for priority in PRIORITIES:
        waiting = sum(1 for _ in islice(_places(ctx.store, keys.line(priority)), _MOST))
        ctx.metrics.gauge("line_jobs", waiting, priority=priority)
    ctx.metrics.gauge("line_looked_timestamp_seconds", ctx.now())


def _place(tenant: str, job: Job) -> str:
    return keys.waiting(job.priority, tenant, job.created, job.job)


def _places(store: ObjectStore, prefix: str) -> Iterator[str]:
    cursor = ""
    while True:
        page = store.list(prefix, cursor=cursor, limit=_PAGE)
        yield from (entry.key for entry in page.objects)
        cursor = page.cursor
        if not cursor:
            return


def _waiting(ctx: FrontContext, priority: str) -> list[Tenant]:
    """Whoever has jobs in the line; those of a tenant that is no more, or not yet, stay where they are."""
    found, cursor = [], ""
    while True:
        page = ctx.store.list(keys.line(priority), cursor=cursor, delimiter="/")
        for prefix in page.prefixes:
            name = prefix.rstrip("/").rpartition("/")[2]
            try:
                found.append(ctx.tenants.get(name))
            except (UnknownTenantError, TenantNotReadyError):
                ctx.log.warning("jobs wait, and their tenant is not known: %s", name)
        cursor = page.cursor
        if not cursor:
            return found


def _in_turn(lines: list[Iterator[Accepted]]) -> Iterator[Accepted]:
    """One of each, then the next of each, until all are done."""
    turn = deque(lines)
    while turn:
        line = turn.popleft()
        accepted = next(line, None)
        if accepted is not None:
            yield accepted
            turn.append(line)


def _shuffled(name: str, now: float) -> str:
    """Another order each minute, so that no tenant is always the first."""
    return hashlib.sha256(f"{name}\n{int(now // 60)}".encode()).hexdigest()

"""Door c: the clock. Every unprocessed item under a prefix of the inbox becomes a job of priority `batch`, once, and
waits in the line for its turn.

One batch per source and minute, however often and under whatever event id it is announced. Its place in the listing
is kept in the store, so a repeat after a crash goes on where the last one stopped. Knows what uploads know.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from shared import records
from shared.context import FrontContext
from shared.errors import (
    BusyError,
    JsonValue,
    ObjectNotFoundError,
    PreconditionFailedError,
    RejectedError,
    RequestError,
)
from shared.events.event import Event
from shared.events.payloads import Rejection
from shared.jobs import ids, inbox, line, making
from shared.jobs.accepted import Accepted
from shared.jobs.making import Made, Origin
from shared.jobs.records import JSON
from shared.records import RecordError
from shared.storage import keys
from shared.tenancy.tenant import Tenant

PAGE = 50
"""Objects between two notes of the place; a crash costs at most this many repeated events, which the broker drops."""


@dataclass(frozen=True)
class BatchRequest:
    """The data of a PingSource."""

    tenant: str
    prefix: str = ""
    """Below the tenant's inbox; empty: all of it."""


@dataclass(frozen=True)
class BatchRecord:
    """system/batch/<id>.json"""

    source: str
    minute: str
    tenant: str
    prefix: str
    """Full."""
    cursor: str = ""
    done: bool = False


def run(event: Event, ctx: FrontContext, *, page_size: int = PAGE) -> Iterator[Accepted]:
    """The refusals among one batch; its jobs go into the line. Its place is noted every `page_size` objects.

    Raises RequestError for data that names no tenant and prefix, DeadlineExceededError when time is up (the repeat
    goes on from there), BusyError when another process is at the same batch.
    """
    tenant, prefix = _request(event, ctx)
    minute = _minute(event)
    batch_id = ids.of_batch(event.source, minute)
    place = _Place(ctx, batch_id)
    record = place.open(BatchRecord(event.source, minute, tenant.name, prefix))
    seen: set[str] = set()
    while not record.done:
        page = ctx.store.list(prefix, cursor=record.cursor, limit=page_size)
        for entry in page.objects:
            ctx.deadline.check()
            made = _item(tenant, entry.key, batch_id, ctx)
            if made is not None and made.accepted.payload.job not in seen and _is_ours(made, batch_id, place.resumed):
                seen.add(made.accepted.payload.job)
                yield from line.queue(ctx, tenant, made)
        record = place.note(replace(record, cursor=page.cursor, done=not page.cursor))
    ctx.log.info("batch done: %d new jobs and refusals", len(seen))


def _is_ours(made: Made, batch_id: str, resumed: bool) -> bool:
    """Whether an item is this batch's: found unprocessed now, or taken by it before a crash came."""
    refused_before = isinstance(made.accepted.payload, Rejection)
    return made.fresh or made.batch == batch_id or (resumed and refused_before)


def _item(tenant: Tenant, key: str, batch_id: str, ctx: FrontContext) -> Made | None:
    try:
        info = ctx.store.head(keys.inside(tenant.name, key))
    except (RejectedError, ObjectNotFoundError):
        return None
    if inbox.MARKER in info.metadata:
        return None
    try:
        draft = inbox.plan(ctx.store, tenant.name, key)
        origin = Origin("batch", "batch", batch_id)
        return None if draft is None else making.make(ctx.store, tenant, draft, origin, ctx.now())
    except RejectedError as error:
        job_id = ids.of_uploads(tenant.name, key, {key: info})
        return making.refused(ctx.store, tenant, job_id, error)


class _Place:
    """How far a batch has come, noted by conditional writes, so that of two processes only one goes on."""

    def __init__(self, ctx: FrontContext, batch_id: str) -> None:
        self._ctx = ctx
        self._key = keys.system("batch", batch_id + ".json")
        self._etag = ""
        self.resumed = False
        """Whether an earlier delivery began this batch."""

    def open(self, record: BatchRecord) -> BatchRecord:
        data = records.dumps(records.write(record))
        try:
            self._etag = self._ctx.store.create(self._key, data, content_type=JSON).etag
        except PreconditionFailedError:
            self.resumed = True
            data, info = self._ctx.store.get(self._key)
            self._etag = info.etag
            with suppress(ValueError):  # damaged: from the start, which makes the same jobs again
                return records.read(BatchRecord, records.loads(data))
        return record

    def note(self, record: BatchRecord) -> BatchRecord:
        data = records.dumps(records.write(record))
        try:
            self._etag = self._ctx.store.replace(self._key, data, self._etag, content_type=JSON).etag
        except PreconditionFailedError:
            raise BusyError("Another process is at this batch.") from None
        return record


def _request(event: Event, ctx: FrontContext) -> tuple[Tenant, str]:
    data: JsonValue = None if isinstance(event.data, bytes) else event.data
    try:
        asked = records.read(BatchRequest, data)
    except RecordError as error:
        raise RequestError(f"Not the data of a batch: {error}.", context={"field": error.path}) from None
    try:
        tenant = ctx.tenants.get(asked.tenant)
        ctx.tenants.admit(tenant)
        folder = asked.prefix.rstrip("/")
        prefix = keys.inbox(tenant.name, folder)
    except RejectedError as error:
        raise RequestError(error.detail, context={"field": "tenant or prefix"}) from None
    return tenant, prefix + "/" if folder else prefix


def _minute(event: Event) -> str:
    """The minute in which the source fired; an event without a time stands for itself."""
    try:
        fired = datetime.fromisoformat(event.time).astimezone(UTC)
    except (ValueError, OverflowError):
        return event.id
    return fired.strftime("%Y-%m-%dT%H:%MZ")

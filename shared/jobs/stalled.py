"""Videos under way, so that the clock can ask again for segments that went lost: no event of theirs, no end.

    system/videos/<tenant>.<job>.json   written when a video was split; the clock deletes it once its job is over

A job's folder tells when anything was last done for it: leases of running work are renewed in there. What stands still
for too long is asked for again, under new ids, and each time later. Work that was not lost after all is done twice
then, and counts once. Knows the store and the film.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from shared import records as text
from shared.context import FrontContext
from shared.errors import ObjectNotFoundError, PreconditionFailedError, RejectedError
from shared.events.payloads import Job, ObjectRef, Segment
from shared.jobs import film, holds, records
from shared.jobs.accepted import Accepted
from shared.jobs.film import Film
from shared.jobs.records import CANCELLED, JSON, OUTCOME
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.storage.scoped import TenantStore

_MOST_TIMES = 6
"""How often the pause is doubled."""


@dataclass(frozen=True)
class _Mark:
    tenant: str
    job: str
    plan: ObjectRef
    asked: int = 0
    """How often its segments were asked for again."""


def watch(storage: TenantStore, plan: ObjectRef) -> None:
    """The job of this store was split."""
    mark = _Mark(storage.tenant, storage.job, plan)
    with suppress(PreconditionFailedError):
        storage.store.create(_key(mark.tenant, mark.job), text.dumps(text.write(mark)), content_type=JSON)


def ask_again(ctx: FrontContext) -> Iterator[Accepted]:
    """The segments that are missing of videos on which nobody has worked for `ctx.video.stalled_seconds`."""
    cursor = ""
    while True:
        page = ctx.store.list(keys.system("videos", "x")[:-1], cursor=cursor)
        for entry in page.objects:
            ctx.deadline.check()
            with suppress(ObjectNotFoundError):  # ended meanwhile
                yield from _one(ctx, entry.key)
        if not (cursor := page.cursor):
            return


def _one(ctx: FrontContext, key: str) -> Iterator[Accepted]:
    data, info = ctx.store.get(key)
    try:
        mark = text.read(_Mark, text.loads(data))
        record = records.find(ctx.store, mark.tenant, mark.job)
        names, last = _folder(ctx.store, mark)
    except (ValueError, RejectedError):
        record, names, last = None, [], 0.0
    if record is None or OUTCOME in names or CANCELLED in names:
        ctx.store.delete(key)
        return
    pause = ctx.video.stalled_seconds * 2 ** min(mark.asked, _MOST_TIMES)
    if ctx.now() - last < pause or holds.waiting(names):
        return
    yield from _missing(ctx, mark, record.job)
    with suppress(PreconditionFailedError):  # another process has asked for the same
        note = text.dumps(text.write(replace(mark, asked=mark.asked + 1)))
        ctx.store.replace(key, note, info.etag, content_type=JSON)


def _missing(ctx: FrontContext, mark: _Mark, job: Job) -> Iterator[Accepted]:
    storage, one = TenantStore(ctx.store, mark.tenant, mark.job, film.ASSEMBLE), Film(ctx.store, mark.tenant, mark.job)
    try:
        plan = film.open_plan(storage.load(mark.plan))
    except RejectedError as error:
        ctx.log.warning("a video stands still, and its plan is not there: %s", error.code)
        return
    missing = one.under_way(plan, one.done())
    if not missing:  # all are done, and whoever was about to join them is not heard of
        one.pass_on(0)
        missing = [0]
    ctx.log.warning("a video stands still: %d segments are asked for again", len(missing))
    ctx.metrics.count("segments_asked_again", len(missing))
    for index in missing:
        cause = f"{mark.job}.{index}.{mark.asked}"
        yield Accepted(mark.tenant, Segment(mark.job, job, mark.plan, index), cause=cause)


def _folder(store: ObjectStore, mark: _Mark) -> tuple[list[str], float]:
    """Names in the job's folder, and when one of them was last written."""
    folder, cursor = keys.job(mark.tenant, mark.job), ""
    names, last = list[str](), 0.0
    while True:
        page = store.list(folder, cursor=cursor)
        names += [entry.key[len(folder) :] for entry in page.objects]
        last = max([last, *(entry.modified for entry in page.objects)])
        if not (cursor := page.cursor):
            return names, last


def _key(tenant: str, job: str) -> str:
    return keys.system("videos", f"{tenant}.{job}.json")

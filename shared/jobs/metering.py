"""From a job's records to its one usage record. Knows the object store, the record formats and the price file's Prices.

A job has one record, under the month in which it was accepted, so that the same key is written whichever end is told,
how often and when. Of several ends the one counts that counts in outcome.json: a result or a rejection that comes after
a replay takes the place of the failure before it; nothing else replaces anything.

A video's stages work on it part by part, each by its own event. Of a part that a stage finished twice, because it was
asked for by two events, the first counts.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from logging import getLogger

from shared import records
from shared.errors import InvalidCloudEventError, JsonValue, ObjectNotFoundError, PreconditionFailedError, StorageError
from shared.events import codec
from shared.events.event import Event
from shared.events.payloads import Failure, Job, Rejection, Result
from shared.jobs.letters import is_end
from shared.jobs.records import JOB, JSON, find, timestamp
from shared.storage import keys
from shared.storage.protocol import ObjectInfo, ObjectStore
from shared.usage import record
from shared.usage.pricing import Prices
from shared.usage.record import Measures, Modes, StageUse, Usage, summed

log = getLogger(__name__)

End = Result | Rejection | Failure
_ENDS: dict[str, type[End]] = {end.outcome: end for end in (Result, Rejection, Failure)}


@dataclass(frozen=True)
class _Made:
    """What of a stage's reply tells how much it made."""

    index: int | None = None
    frames: int = 0


@dataclass(frozen=True)
class _Reply:
    body: str = ""


@dataclass(frozen=True)
class _Work:
    started: float
    finished: float = 0.0
    woke: float = 0.0
    device: dict[str, JsonValue] = field(default_factory=dict)
    reply: _Reply = field(default_factory=_Reply)


def measure(store: ObjectStore, event: Event, prices: Prices) -> Usage | None:
    """The usage of the job whose end `event` tells; None where there is no such job, or nothing of it is left.

    Raises InvalidCloudEventError for an event that ends no job, StorageError where the job's record cannot be read.
    """
    end = _end(event)
    found = find(store, event.tenant, event.job)
    if found is None:
        if _head(store, keys.job(event.tenant, event.job, JOB)) is not None:
            raise StorageError("The record of a job that is to be metered cannot be read.")
        return None
    job, stages = found.job, _stages(store, event)
    device = summed(tuple(stage.device for stage in stages))
    seconds = end.seconds if isinstance(end, Result) else 0.0
    frames = _frames(job, end, stages)
    measures = Measures(end.outcome, frames, _pixels(end), _modes(job), device, job.media, seconds)
    return Usage(
        tenant=event.tenant,
        job=event.job,
        accepted=job.created or _written(store, event),
        ended=event.time,
        code="" if isinstance(end, Result) else end.code,
        priority=job.priority,
        measures=measures,
        stages=stages,
        stored_bytes=sum(entry.size for entry in _objects(store, event) if not entry.key.endswith(".json")),
        bill=prices.bill(measures),
    )


def keep(store: ObjectStore, usage: Usage) -> Usage:
    """Write the job's record, and give the one that counts: ours, or one that was there and stays."""
    key = keys.usage(usage.tenant, usage.accepted[:7], usage.job)
    data = records.dumps(records.write(usage))
    while True:
        with suppress(PreconditionFailedError):
            store.create(key, data, content_type=JSON)
            return usage
        stored, info = store.get(key)
        first = _readable(stored)
        if first is not None and not _gives_way(first, usage):
            return first
        with suppress(PreconditionFailedError):  # another end was metered meanwhile: look again
            store.replace(key, data, info.etag, content_type=JSON)
            return usage


def _readable(data: bytes) -> Usage | None:
    """None for a damaged record, as a disk leaves it that lost power."""
    with suppress(ValueError):
        return record.read(data)
    return None


def _gives_way(first: Usage, second: Usage) -> bool:
    return first.measures.outcome == Failure.outcome != second.measures.outcome


def _end(event: Event) -> End:
    if event.kind is None or not is_end(event):
        raise InvalidCloudEventError("This event ends no job.", context={"attribute": "type"})
    return codec.to_payload(event, _ENDS[event.kind.outcome])


def _works(store: ObjectStore, event: Event) -> Iterator[tuple[str, _Work]]:
    """What was finished for the job and began before its end: whoever is told of the end has no part in it."""
    folder = keys.job(event.tenant, event.job)
    ended = _seconds(event.time)
    for entry in _listed(store, folder):
        stage, _, name = entry.key[len(folder) :].partition("/")
        if not (name.startswith("work.") and name.endswith(".json")):
            continue
        work = _work(store, entry.key)
        if work is not None and work.finished and work.started <= ended:
            yield stage, work


def _stages(store: ObjectStore, event: Event) -> tuple[StageUse, ...]:
    """In the order in which they began; of a part that was done twice at a stage, the first to be finished."""
    first: dict[tuple[str, int], _Work] = {}
    uses: list[tuple[float, StageUse]] = []
    for stage, work in sorted(_works(store, event), key=lambda found: found[1].finished):
        made = _made(work)
        if made.index is not None and first.setdefault((stage, made.index), work) is not work:
            log.warning("a part of a video was done twice, and is billed once", extra={"part": made.index})
            continue
        use = StageUse(stage, _span(work), round(work.woke, 3), work.device, made.index, made.frames)
        uses.append((work.started, use))
    return tuple(use for _, use in sorted(uses, key=lambda entry: entry[0]))


def _made(work: _Work) -> _Made:
    """Of a reply that says nothing of it, nothing."""
    try:
        made = records.read(_Made, records.loads(base64.b64decode(work.reply.body)))
    except ValueError:
        return _Made()
    return made if made.frames >= 0 else _Made()


def _frames(job: Job, end: End, stages: Sequence[StageUse]) -> int:
    if isinstance(end, Result):
        return max(end.frames, 1)
    if job.media != "video":
        return 1
    parts: dict[int, int] = {}
    for use in stages:
        if use.segment is not None:
            parts[use.segment] = max(parts.get(use.segment, 0), use.frames)
    return sum(parts.values())


def _work(store: ObjectStore, key: str) -> _Work | None:
    try:
        work = records.read(_Work, records.loads(store.get(key)[0]))
        summed((work.device,))
    except ObjectNotFoundError:
        return None
    except ValueError as error:
        log.warning("a record of work cannot be read, and nothing is billed for it: %s", error)
        return None
    return work


def _objects(store: ObjectStore, event: Event) -> Iterator[ObjectInfo]:
    yield from _listed(store, keys.job(event.tenant, event.job))
    yield from _listed(store, keys.result(event.tenant, event.job + "."))


def _listed(store: ObjectStore, prefix: str) -> Iterator[ObjectInfo]:
    cursor = ""
    while True:
        page = store.list(prefix, cursor=cursor)
        yield from page.objects
        cursor = page.cursor
        if not cursor:
            return


def _head(store: ObjectStore, key: str) -> ObjectInfo | None:
    try:
        return store.head(key)
    except ObjectNotFoundError:
        return None


def _written(store: ObjectStore, event: Event) -> str:
    """When a job that does not say so was accepted."""
    return timestamp(store.head(keys.job(event.tenant, event.job, JOB)).modified)


def _modes(job: Job) -> Modes:
    options = job.options
    return Modes(options.swapper, options.boost, options.enhancer, options.upscaler)


def _pixels(end: End) -> int:
    if not isinstance(end, Result):
        return 0
    made = end.resized_from or end
    return made.width * made.height


def _span(work: _Work) -> float:
    return round(max(0.0, work.finished - work.started), 3)


def _seconds(time: str) -> float:
    """Since the epoch; infinite for a time that cannot be read: then all work counts."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return float("inf")

"""A job as its owner sees it, told from the records in its folder; there is no other state.

Knows the object store and the record formats: job.json, <stage>/work.*.json, outcome.json, cancelled.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shared import records
from shared.errors import JsonValue, NotFoundError, ObjectNotFoundError, RequestError
from shared.events.contract import IMAGE, VIDEO
from shared.events.event import parse_type
from shared.events.payloads import Face, Job, ObjectRef, Size
from shared.jobs import decisions, film, holds, line
from shared.jobs.decisions import Decision
from shared.jobs.film import Progress
from shared.jobs.records import CANCELLED, JOB, OUTCOME, JobRecord, exists
from shared.rejections import InvalidKeyError
from shared.storage import keys
from shared.storage.protocol import ObjectStore

WAITING, QUEUED, RUNNING, IN_REVIEW, SUCCEEDED, REJECTED, FAILED, CANCELLED_STATUS = STATUSES = (
    "waiting",
    "queued",
    "running",
    "in_review",
    "succeeded",
    "rejected",
    "failed",
    "cancelled",
)
_ENDS = {"completed": SUCCEEDED, "rejected": REJECTED, "failed": FAILED}
DAMAGED = "record_damaged"
"""Code of a job that has ended, and nobody can read how. A replay, or the repeat of an event, writes it anew."""
MOST_WORKS = 32
"""Pieces of work of one stage that are shown: of a video's segments those that were written last."""


@dataclass(frozen=True)
class StageView:
    """One event's work at one stage."""

    stage: str
    started: float
    """Seconds since the epoch."""
    finished: float
    """0 while it is at work."""
    woke: float
    """Seconds that the stage took to wake for this event; 0 when it was awake."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended, as far as its owner needs it."""

    status: str
    stage: str
    code: str = ""
    detail: str = ""
    http_status: int = 0
    """Of the same fault on the API."""
    context: Mapping[str, JsonValue] = field(default_factory=dict)
    image: ObjectRef | None = None
    width: int = 0
    height: int = 0
    faces: tuple[Face, ...] = ()
    """Those that were swapped."""
    source_faces: tuple[Face, ...] = ()
    resized_from: Size | None = None
    warnings: tuple[str, ...] = ()
    provider: str = ""
    """Where the swapper ran."""
    media: str = IMAGE
    """What came out; of a video the four below."""
    seconds: float = 0.0
    frames: int = 1
    frames_swapped: int = 1
    frames_without_face: int = 0


@dataclass(frozen=True)
class JobView:
    id: str
    status: str
    job: Job | None
    """None for uploads that were refused before they became a job, and when the record is damaged."""
    stages: tuple[StageView, ...]
    outcome: Outcome | None
    moderation: Mapping[str, tuple[Decision, ...]] = field(default_factory=dict)
    """By stage; in a listing left out."""
    progress: Progress | None = None
    """Of a video, once it was divided; in a listing left out."""


@dataclass(frozen=True)
class Listing:
    jobs: tuple[JobView, ...]
    cursor: str


@dataclass(frozen=True)
class _Work:
    started: float
    finished: float = 0.0
    woke: float = 0.0


@dataclass(frozen=True)
class _End:
    type: str
    data: dict[str, JsonValue]


@dataclass(frozen=True)
class _Image:
    image: ObjectRef
    width: int
    height: int
    faces: tuple[Face, ...] = ()
    source_faces: tuple[Face, ...] = ()
    resized_from: Size | None = None
    warnings: tuple[str, ...] = ()
    provider: str = ""
    media: str = IMAGE
    seconds: float = 0.0
    frames: int = 1
    frames_swapped: int = 1
    frames_without_face: int = 0


@dataclass(frozen=True)
class _Fault:
    stage: str
    code: str
    detail: str
    status: int = 500
    context: dict[str, JsonValue] = field(default_factory=dict)


def view(store: ObjectStore, tenant: str, job_id: str, *, brief: bool = False) -> JobView:
    """Raises NotFoundError, the same for a foreign, a missing and a malformed id.

    `brief`: as in a listing, without what costs more reads.
    """
    try:
        folder = keys.job(tenant, job_id)
    except InvalidKeyError:
        raise NotFoundError from None
    names = _names(store, folder)
    job = _read(store, folder + JOB, JobRecord) if JOB in names else None
    outcome = read_outcome(store, tenant, job_id) if OUTCOME in names else None
    if JOB not in names and outcome is None:
        raise NotFoundError
    works = [(name, _read(store, folder + name, _Work)) for name in _latest_works(names)]
    stages = [StageView(name.partition("/")[0], w.started, w.finished, w.woke) for name, w in works if w is not None]
    status = CANCELLED_STATUS if CANCELLED in names else _status(outcome, stages, [*names])
    if status == QUEUED and job is not None and line.is_waiting(store, tenant, job.job):
        status = WAITING
    in_order = tuple(sorted(stages, key=lambda entry: entry.started))
    shown = JobView(job_id, status, job.job if job else None, in_order, outcome)
    if brief:
        return shown
    is_video = job is not None and job.job.media == VIDEO
    progress = film.progress(store, tenant, job_id, names) if is_video else None
    return replace(shown, moderation=decisions.of_job(store, tenant, job_id), progress=progress)


def read_outcome(store: ObjectStore, tenant: str, job_id: str) -> Outcome | None:
    """None while the job has not ended; a failure with the code DAMAGED when nobody can read how it has."""
    try:
        data, _ = store.get(keys.job(tenant, job_id, OUTCOME))
    except ObjectNotFoundError:
        return None
    try:
        return _outcome(records.read(_End, records.loads(data)))
    except ValueError:
        return Outcome(FAILED, "", DAMAGED, "The record of how this job ended cannot be read.", _Fault.status)


def read_end(store: ObjectStore, tenant: str, job_id: str) -> Outcome | None:
    """`read_outcome`, or that the job was cancelled, which counts whatever else happened."""
    if exists(store, tenant, job_id, CANCELLED):
        return Outcome(CANCELLED_STATUS, "")
    return read_outcome(store, tenant, job_id)


def _outcome(end: _End) -> Outcome:
    """Raises ValueError for an end that is none of ours."""
    kind = parse_type(end.type)
    if kind is None:
        raise ValueError("not the type of an event of ours")
    if kind.outcome == "completed":
        made = records.read(_Image, end.data)
        return Outcome(SUCCEEDED, kind.stage, http_status=200, **vars(made))
    fault = records.read(_Fault, end.data)
    return Outcome(_ENDS[kind.outcome], fault.stage, fault.code, fault.detail, fault.status, fault.context)


def listing(store: ObjectStore, tenant: str, *, status: str = "", limit: int = 20, cursor: str = "") -> Listing:
    """Jobs in the order of their ids. A page may hold fewer than `limit` and still have a cursor: go on with it.

    Raises RequestError for an unknown status.
    """
    if status and status not in STATUSES:
        raise RequestError(f"status is one of {', '.join(STATUSES)}.", context={"field": "status"})
    page = store.list(keys.jobs(tenant), cursor=cursor, limit=limit, delimiter="/")
    views = []
    for prefix in page.prefixes:
        try:
            views.append(view(store, tenant, prefix.rstrip("/").rpartition("/")[2], brief=True))
        except NotFoundError:
            continue  # a folder whose job was not accepted in the end
    return Listing(tuple(entry for entry in views if not status or entry.status == status), page.cursor)


def _names(store: ObjectStore, folder: str) -> dict[str, float]:
    """What lies in a job's folder, and when it was written: some thirty files, or a thousand of a long video."""
    found: dict[str, float] = {}
    cursor = ""
    while True:
        page = store.list(folder, cursor=cursor)
        found |= {entry.key[len(folder) :]: entry.modified for entry in page.objects}
        if not (cursor := page.cursor):
            return found


def _latest_works(names: Mapping[str, float]) -> list[str]:
    """The work records that are shown."""
    stages: dict[str, list[str]] = {}
    for name in sorted(filter(_is_work, names), key=lambda name: (names[name], name), reverse=True):
        stages.setdefault(name.partition("/")[0], []).append(name)
    return [name for works in stages.values() for name in works[:MOST_WORKS]]


def _is_work(name: str) -> bool:
    stage, _, rest = name.partition("/")
    return bool(stage) and rest.startswith("work.") and rest.endswith(".json")


def _status(outcome: Outcome | None, stages: list[StageView], names: list[str]) -> str:
    if outcome is not None:
        return outcome.status
    if holds.waiting(names):
        return IN_REVIEW
    return RUNNING if stages else QUEUED


def _read(store: ObjectStore, key: str, kind: type[records.T]) -> records.T | None:
    """A record, or None when it is gone or damaged: one bad file must not hide the job."""
    try:
        data, _ = store.get(key)
        return records.read(kind, records.loads(data))
    except (ObjectNotFoundError, ValueError):
        return None

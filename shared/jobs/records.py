"""job.json: the accepted job, written once, the proof that it exists.

Knows the object store and the payloads.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from shared import records
from shared.errors import NotFoundError, ObjectNotFoundError, PreconditionFailedError
from shared.events.payloads import Job
from shared.rejections import InvalidKeyError
from shared.storage import keys
from shared.storage.protocol import ObjectStore

JOB = "job.json"
OUTCOME = "outcome.json"
CANCELLED = "cancelled.json"
JSON = "application/json"


@dataclass(frozen=True)
class JobRecord:
    job: Job
    request: str = ""
    """SHA-256 of what was asked for over HTTP, to tell a repeat from another request with the same key."""
    batch: str = ""
    """The batch that made it, if one did."""
    traceparent: str = ""
    """Only in the line: the span in which it was taken in. Empty for the jobs of a batch: each has its own trace."""


@dataclass(frozen=True)
class _Cancelled:
    at: str


def find(store: ObjectStore, tenant: str, job_id: str) -> JobRecord | None:
    """None when there is none, or one that nobody can read."""
    return _find(store, keys.job(tenant, job_id, JOB))[0]


def create(store: ObjectStore, tenant: str, record: JobRecord) -> JobRecord:
    """Write the job and give the record that counts: of several writers of one id, all get the first one's.

    A record that nobody can read (a disk that lost power) is written over, so that asking again mends it.
    """
    key, data = keys.job(tenant, record.job.job, JOB), records.dumps(records.write(record))
    while True:
        with suppress(PreconditionFailedError):
            store.create(key, data, content_type=JSON)
            return record
        found, etag = _find(store, key)
        if found is not None:
            return found
        with suppress(PreconditionFailedError):  # another writer was faster: theirs counts
            store.replace(key, data, etag, content_type=JSON)
            return record


def exists(store: ObjectStore, tenant: str, job_id: str, name: str) -> bool:
    """Whether a job's folder holds `name` (JOB, OUTCOME, CANCELLED)."""
    try:
        store.head(keys.job(tenant, job_id, name))
    except ObjectNotFoundError:
        return False
    return True


def cancel(store: ObjectStore, tenant: str, job_id: str, now: float) -> str:
    """No further stage works on the job; what it made and what was sent for it is deleted. Gives when that was.

    Uploads in the inbox stay until the tenant's retention time is over, stored templates for good. Raises
    NotFoundError.
    """
    folder = _folder(tenant, job_id)
    if not (exists(store, tenant, job_id, JOB) or exists(store, tenant, job_id, OUTCOME)):
        raise NotFoundError
    mark = _Cancelled(timestamp(now))
    try:
        store.create(folder + CANCELLED, records.dumps(records.write(mark)), content_type=JSON)
    except PreconditionFailedError:  # cancelled before: deleting goes on where it stopped
        with suppress(ValueError):
            mark = records.read(_Cancelled, records.loads(store.get(folder + CANCELLED)[0]))
    sweep(store, tenant, job_id)
    return mark.at


def sweep(store: ObjectStore, tenant: str, job_id: str) -> None:
    """Delete what was sent and made for a job; the records, which tell what happened, stay."""
    _delete_all(store, keys.job(tenant, job_id))
    _delete_all(store, keys.result(tenant, job_id + "."))


def timestamp(seconds: float) -> str:
    """RFC 3339, UTC, milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _find(store: ObjectStore, key: str) -> tuple[JobRecord | None, str]:
    """The record, if it is there and can be read, and its ETag."""
    try:
        data, info = store.get(key)
    except ObjectNotFoundError:
        return None, ""
    try:
        return records.read(JobRecord, records.loads(data)), info.etag
    except ValueError:
        return None, info.etag


def _folder(tenant: str, job_id: str) -> str:
    try:
        return keys.job(tenant, job_id)
    except InvalidKeyError:
        raise NotFoundError from None


def _delete_all(store: ObjectStore, prefix: str) -> None:
    """Everything under `prefix` but the records (JSON files), which tell what happened."""
    cursor = ""
    while True:
        page = store.list(prefix, cursor=cursor)
        for entry in page.objects:
            if not entry.key.endswith(".json"):
                store.delete(entry.key)
        cursor = page.cursor
        if not cursor:
            return

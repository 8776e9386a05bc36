"""From named objects to an accepted job: read each object once, refuse at once what can never work.

Knows the store, the payloads and the look at pictures and videos; no web and no events.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO, cast

from shared.errors import (
    ObjectNotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    RejectedError,
    TransientError,
)
from shared.events.choices import Options
from shared.events.payloads import Job, ObjectRef, Rejection
from shared.isolated.wire import write_all
from shared.jobs import examining, ids, options, records
from shared.jobs.accepted import Accepted
from shared.jobs.inbox import Draft
from shared.jobs.records import JobRecord
from shared.rejections import ObjectGoneError
from shared.storage.protocol import ObjectInfo, ObjectStore
from shared.tenancy import permits
from shared.tenancy.tenant import Tenant
from shared.video import sniff

STAGE = "intake"
_TRIES = 3
_CHANGING = "The uploads are still changing."


@dataclass(frozen=True)
class Made:
    """What became of a draft."""

    accepted: Accepted
    fresh: bool
    """False when the same job, or its refusal, was on record before."""
    batch: str = ""
    """The batch that made the job, if one did."""


@dataclass(frozen=True)
class Origin:
    """How a job came about."""

    name: str
    """`http`, `upload` or `batch`."""
    priority: str = "interactive"
    batch: str = ""


def make(store: ObjectStore, tenant: Tenant, draft: Draft, origin: Origin, now: float) -> Made:
    """The job of the objects that a draft names, as they are now; the same objects always give the same job.

    A picture that can never work, or an option that the tenant may not use, makes a Rejection under the id that the
    job would have had. Raises ObjectGoneError when an object is missing, TransientError when it keeps changing.
    """
    origin = replace(origin, priority=permits.priority(tenant.policy, origin.priority))
    for _ in range(_TRIES):
        found = _heads(store, draft)
        job_id = ids.of_uploads(tenant.name, draft.unit, found)
        record = records.find(store, tenant.name, job_id)
        if record is not None:
            return Made(_accepted(tenant, record.job), fresh=False, batch=record.batch)
        try:
            options.permit(draft.options, tenant.policy)
            pictures = dict.fromkeys(filter(None, (*draft.source, draft.reference)))
            refs = {key: reference(store, tenant, key, found[key].etag) for key in pictures}
            refs[draft.target], media = _target(store, tenant, found[draft.target], draft.options)
        except _ReplacedError:
            continue
        except RejectedError as error:
            return refused(store, tenant, job_id, error)
        job = replace(_job(job_id, draft, refs, origin, now), media=media)
        return _create(store, tenant, job, origin)
    raise TransientError(_CHANGING)


def reference(store: ObjectStore, tenant: Tenant, key: str, etag: str = "") -> ObjectRef:
    """Read a picture once, in the version `etag` if one is given, for its digest and a look at its header.

    Raises RejectedError with the reason why it can never work, ObjectGoneError.
    """
    with examining.AT_ONCE:
        try:
            data, read = store.get(key, limit=tenant.policy.max_bytes)
        except ObjectNotFoundError:
            raise ObjectGoneError(context={"key": key}) from None
        except PayloadTooLargeError:
            raise examining.too_large(tenant) from None
        if etag and read.etag != etag:
            raise _ReplacedError
        return examining.picture(tenant, key, data)


def target(store: ObjectStore, tenant: Tenant, key: str, chosen: Options) -> tuple[ObjectRef, str]:
    """`reference` for a target, which may be a video; its medium as well. TransientError while it keeps changing."""
    for _ in range(_TRIES):
        try:
            return _target(store, tenant, store.head(key), chosen)
        except ObjectNotFoundError:
            raise ObjectGoneError(context={"key": key}) from None
        except _ReplacedError:
            continue
    raise TransientError(_CHANGING)


def _target(store: ObjectStore, tenant: Tenant, found: ObjectInfo, chosen: Options) -> tuple[ObjectRef, str]:
    """A film is read into a file, never into memory; a picture as any other."""
    key, etag, head = found.key, found.etag, bytearray()
    with _unchanged():
        store.read_range(key, 0, sniff.HEAD, lambda _, piece: head.extend(piece), etag=etag)
    if not sniff.may_move(bytes(head)):
        options.suit(chosen)
        return reference(store, tenant, key, etag), examining.IMAGE
    if found.size > max(tenant.policy.max_video_bytes, tenant.policy.max_bytes):
        raise examining.video_too_large(tenant)
    with tempfile.TemporaryFile(buffering=0) as file:
        with _unchanged():
            store.read_range(key, 0, found.size, lambda _, piece: write_all(file.fileno(), piece), etag=etag)
        return examining.target(tenant, key, cast("BinaryIO", file), chosen)


@contextmanager
def _unchanged() -> Iterator[None]:
    try:
        yield
    except PreconditionFailedError:
        raise _ReplacedError from None


def refused(store: ObjectStore, tenant: Tenant, job_id: str, error: RejectedError) -> Made:
    """A refusal, and whether it is news."""
    fresh = not records.exists(store, tenant.name, job_id, records.OUTCOME)
    return Made(rejected(tenant.name, job_id, error), fresh)


def rejected(tenant: str, job_id: str, error: RejectedError) -> Accepted:
    rejection = Rejection(job_id, STAGE, error.code, error.detail, error.status, error.context)
    return Accepted(tenant, rejection, cause=job_id)


class _ReplacedError(Exception):
    """The object was written again between the look and the reading."""


def _heads(store: ObjectStore, draft: Draft) -> dict[str, ObjectInfo]:
    found = {}
    for key in filter(None, (draft.manifest, *draft.source, draft.target, draft.reference)):
        try:
            found[key] = store.head(key)
        except ObjectNotFoundError:
            raise ObjectGoneError("An object that the job names is not there.", context={"key": key}) from None
    return found


def _job(job_id: str, draft: Draft, refs: Mapping[str, ObjectRef], origin: Origin, now: float) -> Job:
    return Job(
        job=job_id,
        source=tuple(refs[key] for key in draft.source),
        target=refs[draft.target],
        options=draft.options,
        origin=origin.name,
        priority=origin.priority,
        created=records.timestamp(now),
        reference=refs[draft.reference] if draft.reference else None,
    )


def _create(store: ObjectStore, tenant: Tenant, job: Job, origin: Origin) -> Made:
    mine = JobRecord(job, batch=origin.batch)
    kept = records.create(store, tenant.name, mine)
    return Made(_accepted(tenant, kept.job), fresh=kept == mine, batch=kept.batch)


def _accepted(tenant: Tenant, job: Job) -> Accepted:
    return Accepted(tenant.name, job, cause=job.job)

"""A tenant's jobs as retention sees them: their folders' listings, and which uploads they name. Knows the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from infra.retention.plans import every
from shared.errors import ObjectNotFoundError
from shared.events.payloads import Job, ObjectRef
from shared.jobs import records
from shared.jobs.records import timestamp
from shared.rejections import InvalidKeyError
from shared.storage import keys
from shared.storage.protocol import ObjectInfo, ObjectStore

_SKEW = 60.0
"""Seconds by which the store's clock may be ahead of the one that stamped the job."""


@dataclass(frozen=True)
class Folder:
    job: str
    objects: tuple[ObjectInfo, ...]

    def name(self, info: ObjectInfo) -> str:
        """Below the folder."""
        return info.key.split("/", 4)[4]

    @property
    def files(self) -> Mapping[str, float]:
        return {self.name(info): info.modified for info in self.objects}


def tenants(store: ObjectStore) -> list[str]:
    """Everybody who has anything in the store, if it is only the plan of a deletion that was cut short after the last
    of the tenant's objects: it is not on record before it is finished."""
    planned = {name for name in _names(store, keys.system("retention") + "/") if name != keys.NOBODY}
    return sorted(planned | _names(store, keys.TENANTS))


def _names(store: ObjectStore, base: str) -> set[str]:
    found, cursor = set[str](), ""
    while True:
        page = store.list(base, cursor=cursor, delimiter="/")
        found |= {prefix[len(base) :].rstrip("/") for prefix in page.prefixes}
        if not (cursor := page.cursor):
            return found


def folders(store: ObjectStore, tenant: str) -> Iterator[Folder]:
    """Every job's, one in memory at a time. What is no job's folder, put there by hand, is left out."""
    found = every(store, keys.jobs(tenant))
    for job, objects in groupby(found, key=lambda info: info.key.split("/", 4)[3]):
        inside = tuple(info for info in objects if info.key.count("/") > 3)
        if inside and _is_job(tenant, job):
            yield Folder(job, inside)


def folder(store: ObjectStore, tenant: str, job: str) -> Folder:
    """As it is now. Raises InvalidKeyError."""
    return Folder(job, tuple(every(store, keys.job(tenant, job))))


def uploads(store: ObjectStore, tenant: str, job: str) -> tuple[ObjectRef, ...]:
    """What the job took out of the inbox; nothing where its record is gone or damaged."""
    record = records.find(store, tenant, job)
    return () if record is None else tuple(ref for ref in pictures(record.job) if _is_upload(tenant, ref))


def taken(store: ObjectStore, tenant: str, job: str) -> list[ObjectInfo]:
    """The job's uploads that are still there as it took them; what was written anew since is another upload."""
    record, found = records.find(store, tenant, job), []
    for ref in {ref.key: ref for ref in uploads(store, tenant, job)}.values():
        with suppress(ObjectNotFoundError):
            info = store.head(ref.key)
            if record and info.size == ref.size and timestamp(info.modified - _SKEW) <= record.job.created:
                found.append(info)
    return found


def pictures(job: Job) -> tuple[ObjectRef, ...]:
    return (*job.source, job.target, *([job.reference] if job.reference else []))


def _is_upload(tenant: str, ref: ObjectRef) -> bool:
    return ref.key.startswith(keys.inbox(tenant))


def _is_job(tenant: str, name: str) -> bool:
    try:
        return bool(keys.job(tenant, name))
    except InvalidKeyError:
        return False

"""One run over a tenant: what is due is planned and deleted, job by job, then what belongs to no job.

Two passes over the jobs: the first finds which are due and which uploads others still need, the second looks at each
of those again and deletes. A job under way is never touched, nor is anything outside of jobs/, results/ and inbox/.
Knows the store, the policy and the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from infra.retention import due, plans
from infra.retention.due import ABANDONED, INPUTS, LEFTOVERS, RECORDS, RESULT, STRAY, UPLOADS, Terms
from infra.retention.folders import Folder, folder, folders, taken, uploads
from infra.retention.plans import Item, Plan, every, items
from shared import records as text
from shared.audit.trail import Trail
from shared.errors import BrokerUnavailableError
from shared.jobs import line
from shared.jobs.records import CANCELLED, JOB, JSON, OUTCOME, exists, timestamp
from shared.rejections import InvalidKeyError
from shared.storage import keys
from shared.storage.protocol import ObjectInfo, ObjectStore

_AT_ONCE = 500
"""Objects in one plan of what belongs to no job."""


@dataclass
class Report:
    """What a run did, or in a dry run would do."""

    tenant: str
    objects: dict[str, int] = field(default_factory=dict)
    """By kind; of ABANDONED, jobs."""
    bytes: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """What has to wait for the next run."""

    def add(self, plan: Plan) -> None:
        for item in plan.items:
            self.count(item.kind, item.size)

    def count(self, kind: str, size: int = 0) -> None:
        self.objects[kind] = self.objects.get(kind, 0) + 1
        self.bytes[kind] = self.bytes.get(kind, 0) + size


@dataclass(frozen=True)
class Run:
    store: ObjectStore
    trail: Trail
    tenant: str
    terms: Terms
    now: float
    abandon: Callable[[str], None]
    """Ends a job that nothing moves."""
    dry: bool = False

    def all(self) -> Report:
        report = Report(self.tenant)
        for plan in plans.unfinished(self.store, self.tenant):
            report.add(plan)
            if not self.dry:
                plans.finish(self.store, self.trail, plan)
        ready, needed = self._sort()
        for job in ready:
            self._job(job, needed, report)
        self._unowned(UPLOADS, self._untaken(needed), report)
        self._unowned(STRAY, self._stray_results(), report)
        self._unowned(LEFTOVERS, self._places(), report)
        return report

    def _sort(self) -> tuple[list[str], set[str]]:
        """The jobs of which something is due, and the uploads that the others may still need."""
        ready, needed = [], set[str]()
        has_uploads = bool(self.store.list(keys.inbox(self.tenant), limit=1).objects)
        for found in folders(self.store, self.tenant):
            if self._due(found):
                ready.append(found.job)
            if has_uploads and self._needs_inputs(found):
                needed.update(ref.key for ref in uploads(self.store, self.tenant, found.job))
        return ready, needed

    def _due(self, found: Folder) -> tuple[str, ...]:
        return due.due(found.files, self.terms, self.now)

    def _needs_inputs(self, found: Folder) -> bool:
        ended = due.end(found.files)
        return ended is None or self.now < ended + self.terms.inputs

    def _job(self, job: str, needed: set[str], report: Report) -> None:
        found = folder(self.store, self.tenant, job)
        kinds = self._due(found)
        if ABANDONED in kinds:
            self._abandon(job, report)
            return
        done = self._delete(job, self._items(found, kinds, needed), report)
        if done and INPUTS in kinds and RECORDS not in kinds:
            mark = text.dumps({"at": timestamp(self.now)})
            self.store.put(keys.job(self.tenant, job, due.SWEPT), mark, content_type=JSON)

    def _items(self, found: Folder, kinds: tuple[str, ...], needed: set[str]) -> Iterator[Item]:
        pictures = [info for info in found.objects if not due.is_record(found.name(info))]
        written = [info for info in found.objects if due.is_record(found.name(info))]
        if STRAY in kinds:
            yield from items(STRAY, [*found.objects])
        if INPUTS in kinds:
            yield from items(INPUTS, pictures)
            mine = taken(self.store, self.tenant, found.job)
            yield from items(INPUTS, [info for info in mine if info.key not in needed])
        if RESULT in kinds:
            yield from items(RESULT, [*every(self.store, keys.result(self.tenant, f"{found.job}."))])
        if RECORDS in kinds:
            yield from items(RECORDS, written)

    def _abandon(self, job: str, report: Report) -> None:
        # asked again, the end first: another run deletes the record of a job before that of its end
        over = exists(self.store, self.tenant, job, OUTCOME) or not exists(self.store, self.tenant, job, JOB)
        if over:
            return
        report.count(ABANDONED)
        if not self.dry:
            try:
                self.abandon(job)
            except BrokerUnavailableError as error:
                report.faults.append(f"{job}: {error.detail}")

    def _delete(self, job: str, found: Iterable[Item], report: Report) -> bool:
        """Whether all of it is gone: not in a dry run, nor when another run was at something else of the same job."""
        plan = Plan(self.tenant, job, timestamp(self.now), tuple(found))
        if self.dry or not plan.items:
            report.add(plan)
            return not self.dry
        done = plans.carry_out(self.store, self.trail, plan)
        report.add(done)
        return done in (plan, replace(plan, items=()))

    def _unowned(self, kind: str, found: Iterator[ObjectInfo], report: Report) -> None:
        while some := list(islice(found, _AT_ONCE)):
            while not self._delete("", items(kind, some), report) and not self.dry:
                pass  # another run's plan of this kind came first, and is carried out now

    def _untaken(self, needed: set[str]) -> Iterator[ObjectInfo]:
        for info in every(self.store, keys.inbox(self.tenant)):
            if info.key not in needed and self._is_old(info):
                yield info

    def _stray_results(self) -> Iterator[ObjectInfo]:
        for info in every(self.store, keys.result(self.tenant, "x")[:-1]):
            job = info.key.rpartition("/")[2].partition(".")[0]
            if self.now >= info.modified + self.terms.results and _is_nobodys(self.store, self.tenant, job):
                yield info

    def _places(self) -> Iterator[ObjectInfo]:
        for priority in line.PRIORITIES:
            for info in every(self.store, keys.line(priority, self.tenant)):
                job = info.key.removesuffix(".json").rpartition(".")[2]
                if self._is_old(info) and is_over(self.store, self.tenant, job):
                    yield info

    def _is_old(self, info: ObjectInfo) -> bool:
        return self.now >= info.modified + self.terms.abandoned


def is_over(store: ObjectStore, tenant: str, job: str) -> bool:
    """Whether no work will be done on the job: it has ended, or there is none. An id that is none counts as neither."""
    try:
        ended = exists(store, tenant, job, OUTCOME) or exists(store, tenant, job, CANCELLED)
        return ended or not exists(store, tenant, job, JOB)
    except InvalidKeyError:
        return False


def _is_nobodys(store: ObjectStore, tenant: str, job: str) -> bool:
    try:
        return not any(exists(store, tenant, job, name) for name in (JOB, OUTCOME, CANCELLED))
    except InvalidKeyError:
        return False

"""What belongs to no tenant's job any more and lies where no tenant reaches: records of deliveries, batches that are
over, dead letters, and reviews of jobs that have ended. By age alone, which is longer than an event can be under way.

Knows the store and the audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from infra.retention import plans
from infra.retention.due import HOUR, LEFTOVERS
from infra.retention.plans import Plan, every, items
from infra.retention.run import Report, is_over
from shared.audit.trail import Trail
from shared.jobs.records import timestamp
from shared.storage import keys
from shared.storage.protocol import ObjectInfo, ObjectStore

_BY_AGE = ("work", "batch", "dead-letter")
_REVIEW = "review"
_AT_ONCE = 500


def sweep(store: ObjectStore, trail: Trail, hours: int, now: float, *, dry: bool) -> Report:
    """Delete what is older than `hours`. On record as deletions of no tenant."""
    report, old = Report(keys.NOBODY), _old(store, now - hours * HOUR)
    for plan in plans.unfinished(store, keys.NOBODY):
        report.add(plan)
        if not dry:
            plans.finish(store, trail, plan)
    while some := list(islice(old, _AT_ONCE)):
        plan = Plan(keys.NOBODY, "", timestamp(now), tuple(items(LEFTOVERS, some)))
        report.add(plan if dry else plans.carry_out(store, trail, plan))
    return report


def _old(store: ObjectStore, before: float) -> Iterator[ObjectInfo]:
    for name in _BY_AGE:
        yield from (info for info in every(store, keys.system(name) + "/") if info.modified <= before)
    for info in every(store, keys.system(_REVIEW) + "/"):
        tenant, _, rest = info.key.rpartition("/")[2].partition(".")
        if info.modified <= before and is_over(store, tenant, rest.partition(".")[0]):
            yield info

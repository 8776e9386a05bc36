"""Write what a job used and costs, once, when its end is told: Result | Rejection | Failure -> a usage record.

Takes raw events, since a job that was cancelled after its end is billed all the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.context import FrontContext, SetupContext
from shared.events.event import Event
from shared.jobs import metering
from shared.jobs.accepted import Accepted


def setup(ctx: SetupContext) -> None:
    ctx.prices()  # a file that cannot be read shows in readiness, before any event is lost to it


def repeatable(_: Event) -> bool:
    """The record itself is written once."""
    return True


def handle(event: Event, ctx: FrontContext) -> Iterable[Accepted]:
    usage = metering.measure(ctx.store, event, ctx.prices())
    if usage is None:
        ctx.log.warning("nothing to meter: the job has no record")
        return ()
    kept = metering.keep(ctx.store, usage)
    ctx.metrics.count("jobs_metered", outcome=kept.measures.outcome)
    ctx.log.info("metered", extra={"cost": kept.bill.cost, "prices": kept.bill.prices})
    return ()

"""What the broker gave up on: the original is kept for replay, and its job fails, once and with the broker's reason."""

from __future__ import annotations

from collections.abc import Iterator

from shared.context import FrontContext
from shared.events.event import Event
from shared.jobs import letters
from shared.jobs.accepted import Accepted


def handle(event: Event, ctx: FrontContext) -> Iterator[Accepted]:
    letters.keep(ctx.store, event)
    ctx.metrics.count("dead_letters", type=event.type if event.kind else "foreign")
    failure = letters.failure(event, ctx.tenants)
    if failure is None:
        ctx.log.warning("event kept, no job fails by it: %s", event.type)
        return
    ctx.log.error("job failed: %s at %s", failure.code, failure.stage)
    yield Accepted(event.tenant, failure, cause=event.digest)

"""What the broker gave up on: the original is kept for replay, and its job fails, once and with the broker's reason."""

from __future__ import annotations

from collections.abc import Iterator

from shared.context import FrontContext
from shared.events.event import Event
from shared.jobs import letters
from shared.jobs.accepted import Accepted

KEEPS_ALL = True
"""Also what no stage believed; nothing is said in the name of whoever stands in it."""


def handle(event: Event, ctx: FrontContext) -> Iterator[Accepted]:
    letters.keep(ctx.store, event)
    proven = event.kind is not None and ctx.is_proven(event)
    ctx.metrics.count("dead_letters", type=event.type if proven else "foreign")
    if event.kind and not proven:
        ctx.log.warning("event kept, and nothing said about its job: it has no right proof: %s", event.type)
        return
    failure = letters.failure(event, ctx.tenants)
    if failure is None:
        ctx.log.warning("event kept, no job fails by it: %s", event.type)
        return
    ctx.log.error("job failed: %s at %s", failure.code, failure.stage)
    yield Accepted(event.tenant, failure, cause=event.digest)

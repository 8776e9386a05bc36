"""Comes after another stage in the same process, and does what its job's origin asks for: passes it on or fails."""

from __future__ import annotations

from shared import errors, rejections
from shared.context import Context
from shared.events.payloads import Job


def handle(event: Job, ctx: Context) -> Job:
    what, _, detail = event.origin.partition(":")
    if what == "second":
        raise {**vars(errors), **vars(rejections)}[detail](
            f"Told to raise {detail}.", context={"seconds": ctx.deadline.remaining()}
        )
    return event

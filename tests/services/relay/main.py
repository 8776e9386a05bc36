"""Does what its job's options ask for, at once: passes it on, ends it, or fails in a named way."""

from __future__ import annotations

from shared import errors, rejections
from shared.context import Context
from shared.events.payloads import Job, Payload, Result


def handle(event: Job, ctx: Context) -> Payload | None:
    what, _, detail = event.origin.partition(":")
    if what == "raise":
        raise {**vars(errors), **vars(rejections)}[detail](f"Told to raise {detail}.")
    if what == "bug":
        raise ZeroDivisionError(detail)
    if what == "remaining":
        raise errors.RejectedError(context={"seconds": ctx.deadline.remaining()})
    if what == "nothing":
        return None
    if what == "result":
        return Result(event.job, event.target, 1, 1, (), "file:///x", "2030-01-01T00:00:00Z")
    return event

"""Asks a person about every job, as moderation does, and passes on those that one has let pass."""

from __future__ import annotations

from shared.context import Context
from shared.events.payloads import Job
from shared.jobs import holds


def handle(event: Job, ctx: Context) -> Job:
    storage = ctx.storage
    if "nsfw" not in holds.approved(storage.store, storage.tenant, storage.job, (storage.stage,)):
        raise holds.ReviewNeededError(context={"checks": ["nsfw"]})
    return event

"""Cannot load its model."""

from __future__ import annotations

from shared.context import Context, SetupContext
from shared.errors import ModelNotFoundError
from shared.events.payloads import Job


def setup(ctx: SetupContext) -> None:
    raise ModelNotFoundError("No place has the model.")


def handle(event: Job, ctx: Context) -> Job:
    return event

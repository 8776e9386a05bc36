"""Fails in its setup with whatever the test puts here."""

from __future__ import annotations

from shared.context import Context, SetupContext
from shared.events.payloads import Job

failure: list[Exception] = []


def setup(ctx: SetupContext) -> None:
    raise failure[0]


def handle(event: Job, ctx: Context) -> Job:
    return event

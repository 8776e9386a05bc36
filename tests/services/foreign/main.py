"""Returns what is no payload, or another job's."""

from __future__ import annotations

from dataclasses import replace

from shared.context import Context
from shared.events.payloads import Job


def handle(event: Job, ctx: Context) -> Job:
    return replace(event, job="job-of-others") if event.origin == "other" else "text"  # type: ignore[return-value]

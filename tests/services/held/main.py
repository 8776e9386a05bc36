"""Works until it is let go; counts how often it was started. For tests within one process."""

from __future__ import annotations

import threading

from shared.context import Context
from shared.events.payloads import Job

go = threading.Event()
started: list[str] = []


def handle(event: Job, ctx: Context) -> Job:
    started.append(event.job)
    go.wait(30)
    return event

"""Loses its GPU for a job whose origin is `fault`, the first time; works as many seconds as any other's says."""

from __future__ import annotations

import time

from shared.context import Context
from shared.errors import GpuFaultError
from shared.events.payloads import Job


def handle(event: Job, ctx: Context) -> Job:
    if event.origin == "fault":
        raise GpuFaultError("CUDA failure 700")
    ctx.storage.save("started", b"", "text/plain")
    time.sleep(float(event.origin))
    return event

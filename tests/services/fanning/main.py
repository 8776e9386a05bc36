"""Answers a job with segments, as many as its `origin` says, and a segment with none once it was let go."""

from __future__ import annotations

import threading
import time

from shared.context import Context
from shared.events.payloads import Job, ObjectRef, Payload, Segment

FANS_OUT = True
NOWHERE = ObjectRef("tenants/demo/jobs/none", "0" * 64, 1, "application/json")
started = threading.Event()
go = threading.Event()


def handle(event: Job | Segment, ctx: Context) -> tuple[Payload, ...]:
    if isinstance(event, Segment):
        return _long(event, ctx)
    return tuple(Segment(event.job, event, NOWHERE, index) for index in range(int(event.origin)))


def _long(event: Segment, ctx: Context) -> tuple[Payload, ...]:
    """Work that looks at its deadline, and leaves something behind that a cancelled job must not keep."""
    started.set()
    ends = time.monotonic() + 60
    while not go.is_set() and time.monotonic() < ends:
        ctx.deadline.check()
        ctx.storage.save("clip.mkv", b"made meanwhile", "video/x-matroska")
        time.sleep(0.01)
    return (Segment(event.job, event.request, NOWHERE, event.index + 1),)

"""Works as many seconds as the job's origin says, and leaves a mark for every start and every end."""

from __future__ import annotations

import time
import uuid

from shared.context import Context
from shared.events.payloads import Job


def handle(event: Job, ctx: Context) -> Job:
    ctx.storage.save(f"started.{uuid.uuid4().hex}", b"", "text/plain")
    time.sleep(float(event.origin))
    ctx.storage.save(f"ended.{uuid.uuid4().hex}", b"", "text/plain")
    return event

"""Ends every job after as many seconds as its origin says, each attempt with other words."""

from __future__ import annotations

import time
import uuid

from shared.context import Context
from shared.events.payloads import Job
from shared.rejections import MediaCorruptError


def handle(event: Job, ctx: Context) -> Job:
    ctx.storage.save(f"started.{uuid.uuid4().hex}", b"", "text/plain")
    time.sleep(float(event.origin))
    raise MediaCorruptError(uuid.uuid4().hex)

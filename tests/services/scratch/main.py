"""Decodes its target in a process of its own and stores what came of it, then does what the job's origin says: ends,
rejects, dies on the spot, or works on until its time is up.
"""

from __future__ import annotations

import os
import signal
import time

from shared.context import Context
from shared.events.payloads import Job
from shared.imaging import raw
from shared.imaging.probe import Limits
from shared.isolated.decode import decode
from shared.rejections import MediaCorruptError


def handle(event: Job, ctx: Context) -> Job:
    picture = decode(ctx.storage.load(event.target), Limits(max_pixels=ctx.tenant.policy.max_pixels))
    ctx.storage.save("pixels.npy", raw.pack(picture.pixels, picture.alpha), raw.CONTENT_TYPE)
    if event.origin == "reject":
        raise MediaCorruptError
    if event.origin == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    while event.origin == "work on":
        time.sleep(0.05)
        ctx.deadline.check()
    return event

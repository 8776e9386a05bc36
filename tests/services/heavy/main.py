"""Takes WARM_SECONDS to load, as a stage with big models does."""

from __future__ import annotations

import os
import time

from shared.context import Context, SetupContext
from shared.events.payloads import Job


def setup(ctx: SetupContext) -> None:
    time.sleep(float(os.environ["WARM_SECONDS"]))
    ctx.log.info("loaded")


def handle(event: Job, ctx: Context) -> Job:
    return event

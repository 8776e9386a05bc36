"""Needs a GPU that another process holds for as long as the file HELD exists."""

from __future__ import annotations

import os
from pathlib import Path

from shared.context import Context, SetupContext
from shared.errors import GpuMemoryError
from shared.events.payloads import Job


def setup(ctx: SetupContext) -> None:
    if Path(os.environ["HELD"]).exists():
        raise GpuMemoryError("CUDA failure 2: out of memory")
    ctx.log.info("loaded")


def handle(event: Job, ctx: Context) -> Job:
    return event

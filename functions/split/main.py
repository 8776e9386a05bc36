"""Divide a video at its key frames: Job -> its first segments. The others are asked for as segments are done."""

from __future__ import annotations

from functions.split.dividing import Dividing
from shared.context import Context
from shared.events.payloads import Job, Segment
from shared.jobs import film, stalled
from shared.jobs.records import JSON

FANS_OUT = True


def handle(event: Job, ctx: Context) -> tuple[Segment, ...]:
    plan = film.kept_plan(ctx.storage) or Dividing(event, ctx).plan()
    ref = ctx.storage.save(film.PLAN, film.closed_plan(plan), JSON)
    stalled.watch(ctx.storage, ref)
    return tuple(Segment(event.job, event, ref, index) for index in film.asked_first(plan))

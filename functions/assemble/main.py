"""Where a video's segments come together: Clip -> the next segments, or, of the last one, the joined Video."""

from __future__ import annotations

from functions.assemble.joining import Joining
from shared.context import Context
from shared.events.payloads import Clip, Segment, Video
from shared.jobs.film import Film, open_plan

FANS_OUT = True


def handle(event: Clip, ctx: Context) -> tuple[Segment | Video, ...]:
    storage = ctx.storage
    film, plan = Film(storage.store, storage.tenant, storage.job), open_plan(storage.load(event.plan))
    wanted = film.take(plan, event, ctx.cause)
    if wanted is None:
        joined = Joining(event, plan, film, ctx).video()
        if isinstance(joined, Video):
            return (joined,)
        ctx.log.warning("clips are gone: %d segments are asked for again", len(joined))
        ctx.metrics.count("segments_asked_again", len(joined))
        film.lose(joined)
        wanted = joined
    return tuple(Segment(event.job, event.request, event.plan, index) for index in wanted)

"""The front door for events: upload notifications and the clock become jobs, and as jobs end, waiting ones begin.

What stands still of a video is asked for again by the clock. The HTTP API is mounted beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from shared.context import FrontContext
from shared.errors import InvalidCloudEventError
from shared.events import notifications
from shared.events.event import Event
from shared.jobs import batch, letters, line, stalled, uploads
from shared.jobs.accepted import Accepted

FRONT_DOOR = True


def repeatable(event: Event) -> bool:
    """What starts waiting jobs does no harm however often it comes."""
    return letters.is_end(event) or line.is_tick(event)


def handle(event: Event, ctx: FrontContext) -> Iterator[Accepted]:
    if letters.is_end(event):
        return line.ended(ctx, event.tenant, event.job)
    if line.is_tick(event):
        return chain(line.tick(ctx), stalled.ask_again(ctx))
    if event.type == line.PING:
        return chain(batch.run(event, ctx), line.pace(ctx))
    if isinstance(event.data, bytes):
        raise InvalidCloudEventError("A notification is JSON.", context={"attribute": "datacontenttype"})
    return uploads.accept(notifications.parse(event.data), ctx)

"""The front door for events: upload notifications and the clock become jobs. The HTTP API is mounted beside it."""

from __future__ import annotations

from collections.abc import Iterator

from shared.context import FrontContext
from shared.errors import InvalidCloudEventError
from shared.events import notifications
from shared.events.event import Event
from shared.jobs import batch, uploads
from shared.jobs.accepted import Accepted

FRONT_DOOR = True


def handle(event: Event, ctx: FrontContext) -> Iterator[Accepted]:
    if event.type == batch.PING:
        return batch.run(event, ctx)
    if isinstance(event.data, bytes):
        raise InvalidCloudEventError("A notification is JSON.", context={"attribute": "datacontenttype"})
    return uploads.accept(notifications.parse(event.data), ctx)

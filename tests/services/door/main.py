"""Takes raw events: each name in the data becomes a job."""

from __future__ import annotations

from collections.abc import Iterator

from shared.context import FrontContext
from shared.errors import InvalidCloudEventError
from shared.events.event import Event
from shared.events.payloads import Job, ObjectRef
from shared.jobs.accepted import Accepted


def handle(event: Event, ctx: FrontContext) -> Iterator[Accepted]:
    if not isinstance(event.data, list):
        raise InvalidCloudEventError("The data is a list of names.")
    for name in map(str, event.data):
        picture = ObjectRef(f"tenants/demo/inbox/{name}", "0" * 64, 1, "image/png")
        yield Accepted("demo", Job(name, (picture,), picture), cause=name)

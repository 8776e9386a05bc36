"""What a front door hands to the harness: one event to publish, and for whom.

Knows the payloads and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.events.payloads import Failure, Job, Rejection, Segment


@dataclass(frozen=True)
class Accepted:
    """A door yields these one by one, and goes on only after the harness has published the one before.

    Publishing the same one twice is harmless: `cause` decides the event's id, and the broker drops a repeated id.
    """

    tenant: str
    payload: Job | Segment | Rejection | Failure
    cause: str
    """What the event's id is made from: the same cause and outcome always give the same id."""
    by: str = ""
    """Whose key or token asked for it; empty where no caller did."""
    waited: bool = field(default=False, compare=False)
    """Whether the job stood in the line until now."""
    traceparent: str = field(default="", compare=False)
    """Of a job that waited: the span in which it was taken in; empty for one that begins a trace of its own."""

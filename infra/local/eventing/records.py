"""The rows of the broker's store as dataclasses: what is published, taken, answered, counted and told.

Knows events and the states of a delivery, no SQL.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.delivery import Progress, State


@dataclass(frozen=True, slots=True)
class Publication:
    """An event about to be stored for these Triggers."""

    broker: str
    event: CloudEvent
    ttl: int
    triggers: Sequence[str]


@dataclass(frozen=True, slots=True)
class Claim:
    """One delivery in hand; code, answer and destination are those of the subscriber's last failure."""

    seq: int
    trigger: str
    progress: Progress
    publication: Publication
    code: int | None
    answer: str
    destination: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the subscriber answered: for the record and for the dead letter copy."""

    code: int
    answer: str
    destination: str


@dataclass(frozen=True, slots=True)
class Queue:
    """Deliveries of one Trigger. `retrying` waits for another attempt at the subscriber or at the sink."""

    waiting: int = 0
    in_flight: int = 0
    retrying: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One delivery, or an event that no Trigger wanted (then everything from `trigger` on is empty).

    Times are seconds since the epoch: `accepted` on disk, `started` the last attempt, `finished` the end of the
    delivery. `code` is the subscriber's last answer, `answer` the body of its last refusal.
    """

    broker: str
    source: str
    id: str
    type: str
    subject: str | None
    accepted: float
    trigger: str | None
    state: State | None
    failures: int
    started: float | None
    finished: float | None
    code: int | None
    answer: str
    destination: str

"""The delivery rules of Knative Eventing as pure functions: what an answer means, when to try again, what the
dead letter copy carries.

Numbers from knative/eventing: pkg/kncloudevents/retries.go (which answers are retried), event_dispatcher.go (dead
letter extensions, 500 for transport errors), filter_handler.go (502 for a body that is no event), config-br-defaults
(delivery of a Broker without its own). Knows no clock, no storage and no network.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.spec import Broker, Delivery, Trigger

TTL_ATTRIBUTE = "knativebrokerttl"
FIRST_TTL = 255
DEFAULT_DELIVERY = Delivery(retry=10, backoff_policy="exponential", backoff_delay=0.2)
NO_EVENT = 502
NO_ANSWER = 500

_RETRIED = frozenset({404, 408, 409, 429})
_ERROR_DATA_LIMIT = 1024
_SINK_DELAY = 1.0
_SINK_LONGEST_DELAY = 60.0

State = Literal["waiting", "burying", "done", "dead", "dropped"]
"""waiting: for the subscriber; burying: for the dead letter sink; done: answered 2xx; dead: in the sink, kept for
replay; dropped: given up without a sink that took it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: an HTTP status (or NO_ANSWER, NO_EVENT), the body for the record, a reply event.

    `reached` is False where the subscriber never saw the event because others kept it busy.
    """

    code: int
    body: bytes = b""
    reply: CloudEvent | None = None
    reached: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one delivery has come: failed attempts at the subscriber and at the sink, and where it stands."""

    state: State
    failures: int = 0
    sink_failures: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """What follows an answer: the new progress and, where it goes on, the wait before it in seconds."""

    progress: Progress
    wait: float = 0.0


def accepted(code: int) -> bool:
    """True for 2xx."""
    return 200 <= code < 300


def retried(code: int) -> bool:
    """True where Knative sends again: server errors, 404, 408, 409, 429. Other 4xx and 3xx are final."""
    return code >= 500 or code in _RETRIED


def backoff(delivery: Delivery, failures: int) -> float:
    """Seconds before the next attempt after `failures` >= 1 failed ones; none where policy or delay is not set."""
    if delivery.backoff_policy is None or delivery.backoff_delay is None:
        return 0.0
    factor = failures if delivery.backoff_policy == "linear" else 2.0**failures
    return float(delivery.backoff_delay * factor)


def effective(broker: Broker, trigger: Trigger) -> Delivery:
    """The delivery of a Trigger: its own as a whole, else the Broker's, else the default.

    Only the dead letter sink is inherited by itself (eventing, trigger.go: resolveDeadLetterSink).
    """
    general = broker.delivery or DEFAULT_DELIVERY
    own = trigger.delivery or general
    return own if own.dead_letter_sink else replace(own, dead_letter_sink=general.dead_letter_sink)


def next_step(progress: Progress, code: int, delivery: Delivery) -> Step:
    """What to do after an answer with `code`, for the subscriber (waiting) or the sink (burying)."""
    if progress.state == "burying":
        return _after_burying(progress, code)
    if accepted(code):
        return Step(replace(progress, state="done"))
    failures = progress.failures + 1
    if retried(code) and failures <= delivery.retry:
        return Step(replace(progress, failures=failures), backoff(delivery, failures))
    return Step(Progress("burying" if delivery.dead_letter_sink else "dropped", failures))


def _after_burying(progress: Progress, code: int) -> Step:
    """The sink is tried until it takes the copy: what is in it must not be lost, so retries have no end."""
    if accepted(code):
        return Step(replace(progress, state="dead"))
    failures = progress.sink_failures + 1
    if not retried(code):
        return Step(replace(progress, state="dropped", sink_failures=failures))
    wait = min(_SINK_LONGEST_DELAY, _SINK_DELAY * 2.0 ** min(failures - 1, 6))
    return Step(replace(progress, sink_failures=failures), wait)


def dead_letter_copy(event: CloudEvent, destination: str, code: int, data: str) -> CloudEvent:
    """The event as the sink gets it: with knativeerrordest, knativeerrorcode and knativeerrordata."""
    extensions = {"knativeerrordest": destination, "knativeerrorcode": str(code), "knativeerrordata": data}
    return event.extended({name: value for name, value in extensions.items() if value})


def error_data(body: bytes) -> str:
    """An answer's body as an attribute: printable ASCII as it is, else base64; at most 1024 characters."""
    text = body.decode("ascii", "replace")
    if not text.isascii() or not text.isprintable():
        text = base64.b64encode(body[: _ERROR_DATA_LIMIT * 3 // 4]).decode()
    return text[:_ERROR_DATA_LIMIT]


def time_to_live(attributes: Mapping[str, str]) -> int:
    """Hops left to an event as it enters the broker: one less than it brings, 255 where it brings none.

    At 0 or below the event is dropped: this ends loops of replies.
    """
    brought = attributes.get(TTL_ATTRIBUTE, "")
    return int(brought) - 1 if brought.isascii() and brought.isdigit() and len(brought) < 10 else FIRST_TTL

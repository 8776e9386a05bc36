"""What a delivery is answered with: stored replies, and problem documents (RFC 9457) made from the error tree.

Whoever calls the HTTP API reads an error's own status. A broker reads less: it sends an event again on 404, 408,
409, 429 and 5xx and gives it up on any other 4xx, so on the event path a permanent fault never wears one of those.
Knows the error tree and JSON; no web framework.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import JsonValue, TransientError, WakeswapError
from shared.records import dumps

PROBLEM = "application/problem+json"
PROBLEM_TYPE = "urn:wakeswap:problem:"
"""A problem's `type` is this and its code."""
SENT_AGAIN = frozenset({404, 408, 409, 429})
"""4xx codes on which Knative retries (eventing, pkg/kncloudevents/retries.go)."""


@dataclass(frozen=True)
class Reply:
    """An HTTP answer as bytes, so that it can be stored and given again unchanged."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


NOTHING = Reply(204)
"""Done, and nothing to say: a broker takes it as delivered without a reply event."""
PUBLISHED = Reply(202)
"""Done, and the events went to the sink instead of into the answer."""


def problem(error: WakeswapError, status: int = 0) -> Reply:
    """The answer of the HTTP API, and of everything that is not an event. `status`: instead of the error's own."""
    status = status or error.status
    fields: dict[str, JsonValue] = {
        "type": PROBLEM_TYPE + error.code,
        "title": error.title,
        "status": status,
        "detail": error.detail,
        "code": error.code,
    }
    if error.context:
        fields["context"] = error.context
    headers = [("Content-Type", PROBLEM), ("Cache-Control", "no-store")]
    if isinstance(error, TransientError):
        headers.append(("Retry-After", str(error.retry_after)))
    return Reply(status, tuple(headers), dumps(fields))


def refusal(error: WakeswapError) -> Reply:
    """The answer to an event: sent again exactly if `error` may pass."""
    permanent = not isinstance(error, TransientError) and error.status in SENT_AGAIN
    return problem(error, 400 if permanent else error.status)

"""Hands events to the broker behind K_SINK, for what cannot go out as a reply. Knows HTTP and the codec.

Sending twice is harmless, since an event's id comes from its cause and a broker drops a repeated id.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import urllib3
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential_jitter

from shared.errors import BrokerUnavailableError
from shared.events.codec import encode_binary
from shared.events.event import Event
from shared.serving.answers import SENT_AGAIN

ATTEMPTS = 4
PAUSE_SECONDS = 0.1
"""Before the second attempt; doubled for each further one, and jittered."""
TIMEOUT = urllib3.Timeout(connect=2.0, read=30.0)
"""A broker on in-memory channels answers only after its subscribers did, so reading takes a cold start."""


class Emitter:
    """`sink`: http or https address of the broker; `connections`: how many are kept open between events."""

    def __init__(self, sink: str, *, connections: int) -> None:
        parts = urlsplit(sink)
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._pool = urllib3.connection_from_url(sink, maxsize=connections, timeout=TIMEOUT, retries=False)

    def publish(self, event: Event) -> None:
        """Return when the broker has accepted the event. Raises BrokerUnavailableError."""
        headers, body = encode_binary(event)
        if traceparent := event.extensions.get("traceparent"):
            headers["traceparent"] = str(traceparent)  # a broker that traces follows the header
        attempts = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_exponential_jitter(multiplier=PAUSE_SECONDS, max=2.0, jitter=PAUSE_SECONDS),
            retry=retry_if_exception_type(BrokerUnavailableError),
            reraise=True,
        )
        status = attempts(self._post, headers, body)
        if not 200 <= status < 300:
            raise BrokerUnavailableError(f"The broker refuses the event with {status}.")

    def _post(self, headers: dict[str, str], body: bytes) -> int:
        """The status. Raises BrokerUnavailableError for everything that may pass."""
        try:
            status: int = self._pool.request("POST", self._path, body=body, headers=headers, redirect=False).status
        except urllib3.exceptions.HTTPError as error:
            raise BrokerUnavailableError from error
        if status >= 500 or status in SENT_AGAIN:
            raise BrokerUnavailableError(f"The broker answered {status}.")
        return status

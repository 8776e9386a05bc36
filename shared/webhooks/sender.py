"""One signed POST to a tenant's webhook, and what its answer means.

The way there is `shared.net`'s: checked numbers only, and no redirect is followed. Only the standard library, so that
the stage stays light; signing is the standardwebhooks package's.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from http.client import HTTPException, HTTPResponse

from standardwebhooks import Webhook as Signer

from shared.errors import ConfigError, TransientError
from shared.net import address
from shared.net.pinned import Pinned, Way, numbers
from shared.rejections import DeliveryRefusedError, UrlNotAllowedError
from shared.telemetry import spans
from shared.telemetry.spans import inside
from shared.tenancy.tenant import Webhook

MAX_ANSWER_BYTES = 4096
"""Read of the answer's body, so that a short one lets the receiver finish in order; the rest is not wanted."""
SECONDS = 10.0
"""Longest a delivery may take in all, connection included."""
MAY_PASS = frozenset({408, 425, 429})
"""4xx answers that say `later`, not `never`."""


def timestamp() -> str:
    """Now, as Standard Webhooks writes it in a body: RFC 3339, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def headers(hook: Webhook, message_id: str, body: str, now: datetime) -> dict[str, str]:
    """Standard Webhooks headers: id, timestamp, signature. Raises ConfigError when the tenant has no secret."""
    if not hook.secret:
        raise ConfigError("The tenant has a webhook and no secret to sign with.", context={"field": "webhook_secrets"})
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Signer(hook.secret).sign(message_id, now, body),
    }


def send(hook: Webhook, message_id: str, body: str, *, seconds: float = SECONDS, way: Way | None = None) -> int:
    """Deliver `body` (JSON) and give the 2xx status it was answered with.

    `message_id`: the same for every try of one event, so that the receiver can tell repeats. Raises
    DeliveryRefusedError for what must not be called or says it never wants this, TransientError for what may work
    later.
    """
    try:
        status = _post(hook, message_id, body.encode(), seconds, way or Way())
    except UrlNotAllowedError as error:
        raise DeliveryRefusedError("The webhook's address is not allowed.") from error
    if 200 <= status < 300:
        return status
    if status >= 500 or status in MAY_PASS:
        raise TransientError(f"The webhook answered {status}.")
    raise DeliveryRefusedError(f"The webhook answered {status}.", context={"status": status})


def _traced() -> dict[str, str]:
    """So that the receiver's own trace can go on from ours."""
    now = spans.current()
    return {"traceparent": str(now)} if now else {}


def _post(hook: Webhook, message_id: str, body: bytes, seconds: float, way: Way) -> int:
    target = address.examine(hook.url, allow_local=hook.allow_local)
    signed = headers(hook, message_id, body.decode(), datetime.now(UTC))
    ends = time.monotonic() + seconds
    ips = numbers(target, way, seconds, allow_local=hook.allow_local)
    if not ips:
        raise TransientError("The webhook's name has no address.")
    sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **signed}
    try:
        with (
            inside("webhook", "client", http__request__method="POST", server__address=target.host) as span,
            Pinned(target, ips, max(ends - time.monotonic(), 0.1), way) as connection,
        ):
            answer = connection.ask("POST", sent | _traced(), body)
            _skim(answer)
            connection.check()
            if span is not None:
                span.note(http__response__status_code=answer.status)
            return answer.status
    except (OSError, HTTPException) as error:
        raise TransientError("The webhook cannot be reached.") from error


def _skim(answer: HTTPResponse) -> None:
    """Read a little of the body; `read` would take all there is for a chunk that says it has -1 bytes."""
    left = MAX_ANSWER_BYTES
    while left > 0 and (part := answer.read1(left)):
        left -= len(part)

"""One signed POST to a tenant's webhook, and what its answer means.

The name is resolved once, every number it resolves to must be public, and the connection goes to exactly that
number: a second, different answer of the name server is never asked for. No redirect is followed. Only the standard
library, so that the stage stays light; signing is the standardwebhooks package's.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException

from standardwebhooks import Webhook as Signer

from shared.errors import ConfigError, TransientError
from shared.rejections import DeliveryRefusedError
from shared.tenancy.tenant import Webhook
from shared.webhooks import address
from shared.webhooks.address import Target

Resolver = Callable[[str, int], Sequence[str]]
MAX_ANSWER_BYTES = 4096
"""Read of the answer's body, so that a short one lets the receiver finish in order; the rest is not wanted."""
SECONDS = 10.0
"""Longest a delivery may take in all, connection included."""
MAY_PASS = frozenset({408, 425, 429})
"""4xx answers that say `later`, not `never`."""


def resolve(host: str, port: int) -> list[str]:
    """All IP numbers of a name, in the system's order. Raises TransientError when the name cannot be resolved now."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TransientError("The webhook's name cannot be resolved.") from error
    return [str(entry[4][0]) for entry in found]


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


def send(
    hook: Webhook,
    message_id: str,
    body: str,
    *,
    seconds: float = SECONDS,
    resolver: Resolver = resolve,
    tls: ssl.SSLContext | None = None,
) -> int:
    """Deliver `body` (JSON) and give the 2xx status it was answered with.

    `message_id`: the same for every try of one event, so that the receiver can tell repeats. `tls`: the context to
    trust, the system's when left out. Raises DeliveryRefusedError for what must not be called or says it never wants
    this, TransientError for what may work later.
    """
    target = address.examine(hook.url, allow_local=hook.allow_local)
    signed = headers(hook, message_id, body, datetime.now(UTC))
    numbers = [address.check(ip, allow_local=hook.allow_local) for ip in resolver(target.host, target.port)]
    if not numbers:
        raise TransientError("The webhook's name has no address.")
    status = _post(_Pinned(target, numbers[0], seconds, tls), body.encode(), signed)
    if 200 <= status < 300:
        return status
    if status >= 500 or status in MAY_PASS:
        raise TransientError(f"The webhook answered {status}.")
    raise DeliveryRefusedError(f"The webhook answered {status}.", context={"status": status})


def _post(connection: _Pinned, body: bytes, signed: Mapping[str, str]) -> int:
    clock = threading.Timer(connection.seconds, connection.cut)
    clock.daemon = True
    clock.start()
    try:
        return connection.post(body, signed)
    except (OSError, HTTPException) as error:
        raise TransientError("The webhook cannot be reached.") from error
    finally:
        clock.cancel()
        connection.close()


class _Pinned(HTTPConnection):
    """A connection to one IP number, with TLS for the name."""

    def __init__(self, target: Target, ip: str, seconds: float, tls: ssl.SSLContext | None) -> None:
        super().__init__(target.host, target.port, timeout=seconds)
        self.seconds = seconds
        self.expired = False
        self._target, self._ip, self._tls = target, ip, tls

    def post(self, body: bytes, signed: Mapping[str, str]) -> int:
        self.putrequest("POST", self._target.path, skip_host=True, skip_accept_encoding=True)
        fixed = {"Host": self._target.netloc, "Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in {**fixed, "User-Agent": "wakeswap", "Connection": "close", **signed}.items():
            self.putheader(name, value)
        self.endheaders(body)
        answer = self.getresponse()
        answer.read(MAX_ANSWER_BYTES)
        if self.expired:  # what was cut off reads like an answer that ended
            raise TimeoutError
        return answer.status

    def connect(self) -> None:
        self.sock = socket.create_connection((self._ip, self._target.port), self.seconds)
        if self._target.tls:
            context = self._tls or ssl.create_default_context()
            wrapped = context.wrap_socket(self.sock, server_hostname=self._target.host, do_handshake_on_connect=False)
            self.sock = wrapped
            wrapped.do_handshake()

    def cut(self) -> None:
        """End a conversation that drips: each byte may be in time while the whole never ends."""
        self.expired = True
        if self.sock is not None:
            with suppress(OSError):  # it ended by itself just now
                self.sock.shutdown(socket.SHUT_RDWR)

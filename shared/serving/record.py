"""The stored form of one event's work: first a lease, later the reply. Knows JSON.

The HTTP API reads `started`, `finished` and `woke` from it to show how a job went, and metering `device` too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.serving.answers import Reply


@dataclass(frozen=True)
class Record:
    owner: str
    """Random name of the attempt that works on the event; empty in a record nobody can read."""
    expires: float
    """Seconds since the epoch until which the work is the owner's."""
    started: float = 0.0
    """Seconds since the epoch."""
    finished: float = 0.0
    """Seconds since the epoch; 0 while there is no reply."""
    woke: float = 0.0
    """Seconds from the start of the process to ready, if this was the process's first event; else 0."""
    device: Mapping[str, float] = field(default_factory=dict)
    """Seconds that models ran for the attempt that finished, by provider; what others ran for that died counts not."""
    reply: Reply | None = None

    def encode(self) -> bytes:
        fields: dict[str, object] = {
            "owner": self.owner,
            "expires": self.expires,
            "started": self.started,
            "finished": self.finished,
            "woke": self.woke,
            "device": dict(self.device),
        }
        if self.reply is not None:
            body = base64.b64encode(self.reply.body).decode()
            fields["reply"] = {"status": self.reply.status, "headers": self.reply.headers, "body": body}
        return json.dumps(fields).encode()

    @classmethod
    def decode(cls, data: bytes) -> Record:
        """A damaged record reads as a lease that ran out, so that the work is done rather than stuck."""
        try:
            fields = json.loads(data)
            return cls(
                owner=str(fields["owner"]),
                expires=float(fields["expires"]),
                started=float(fields["started"]),
                finished=float(fields["finished"]),
                woke=float(fields["woke"]),
                device={str(name): float(seconds) for name, seconds in fields.get("device", {}).items()},
                reply=_reply(fields["reply"]) if "reply" in fields else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls(owner="", expires=0.0)


def _reply(fields: dict[str, object]) -> Reply:
    status, headers, body = fields["status"], fields["headers"], fields["body"]
    if not isinstance(status, int) or not isinstance(headers, list) or not isinstance(body, str):
        raise TypeError("not a stored reply")
    return Reply(status, tuple((str(name), str(value)) for name, value in headers), base64.b64decode(body))

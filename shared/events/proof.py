"""The proof that an event was made by this installation: a keyed digest over what it says, and for whom.

Whoever may publish to the broker could else name any tenant. The extension `proof` is `<key id>.<HMAC-SHA256, hex>`
over the attributes that stages and Triggers act on and over the data as a JSON value, so it outlives whatever a broker
may do to an event: other header case, structured mode, other JSON white space, its own `knative...` and `traceparent`.
Pure: knows the Event, JSON and the error tree.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shared import records
from shared.errors import ConfigError, JsonValue
from shared.events.event import Event
from shared.refusals import UntrustedEventError

ATTRIBUTE = "proof"
UNSIGNED = "unsigned"
"""Stands among the keys where events without a proof are taken too; alone, nothing is signed and nothing checked."""
COVERED = ("tenantid", "media", "priority", "enhance", "wake")
"""Extensions under the proof, with id, source, type, subject and the data. Not `time`: brokers written in Go drop its
trailing zeros."""

_KEY = re.compile(r"([a-z0-9][a-z0-9-]{0,15})=([!-+\--~]{32,})")
"""`<id>=<secret>`; a secret of 32 visible ASCII characters without a comma, such as 16 random bytes in hex."""


@dataclass(frozen=True)
class EventKeys:
    """The keys of the installation: the first signs, each verifies, so that keys can be changed while events travel."""

    secrets: Mapping[str, bytes] = field(repr=False)
    """By key id, in order."""
    unsigned: bool = False
    """Whether an event without a proof is taken too."""

    def sign(self, event: Event) -> Event:
        """The event with its proof; the same event always gets the same one."""
        if not self.secrets:
            return event
        key_id, secret = next(iter(self.secrets.items()))
        proof = f"{key_id}.{_digest(secret, event)}"
        return replace(event, extensions={**event.extensions, ATTRIBUTE: proof})

    def verify(self, event: Event) -> None:
        """Return when the event was made here. Raises UntrustedEventError."""
        if problem := self._problem(event):
            raise UntrustedEventError(problem)

    def proves(self, event: Event) -> bool:
        """Whether the event was made here."""
        return not self._problem(event)

    def _problem(self, event: Event) -> str:
        proof = str(event.extensions.get(ATTRIBUTE, ""))
        if not self.secrets or (self.unsigned and not proof):
            return ""
        if not proof:
            return "The event has no proof of who made it."
        key_id, _, digest = proof.partition(".")
        secret = self.secrets.get(key_id)
        if secret is None:
            return "The event's proof was made with a key that is not known here."
        right = hmac.compare_digest(digest.encode(), _digest(secret, event).encode())
        return "" if right else "The event's proof is not that of this event."


def read(text: str) -> EventKeys:
    """The keys from their setting: `<id>=<secret>[,...]`, with or without `unsigned`, or `unsigned` alone.

    Raises ConfigError, also for an empty text: to run without proofs has to be said.
    """
    secrets: dict[str, bytes] = {}
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    for entry in entries:
        if entry == UNSIGNED:
            continue
        found = _KEY.fullmatch(entry)
        if found is None or found[1] in secrets:
            raise _wrong("Each entry is <id>=<secret>: another id each time, and 32 or more visible characters.")
        secrets[found[1]] = found[2].encode()
    if not entries:
        raise _wrong(f"Set the key that events are signed with, or say `{UNSIGNED}` to take events from anyone.")
    return EventKeys(secrets, UNSIGNED in entries)


def _wrong(problem: str) -> ConfigError:
    return ConfigError(f"WAKESWAP_EVENT_KEYS: {problem}", context={"variable": "WAKESWAP_EVENT_KEYS"})


def _digest(secret: bytes, event: Event) -> str:
    """HMAC-SHA256 in hex. What is absent is not in the text, so an attribute may come under the proof later."""
    said = {"id": event.id, "source": event.source, "type": event.type, "subject": event.subject}
    said |= {name: str(event.extensions[name]) for name in COVERED if name in event.extensions}
    kind = "bytes" if isinstance(event.data, bytes) else "json"
    data = event.data if isinstance(event.data, bytes) else records.dumps(_number(event.data))
    text = records.dumps(["wakeswap event", said, kind, hashlib.sha256(data).hexdigest()])
    return hmac.digest(secret, text, "sha256").hex()


def _number(value: JsonValue) -> JsonValue:
    """JSON has one kind of number (RFC 8785, 3.2.2.3): whoever reads and writes 1.0 may write 1."""
    if isinstance(value, dict):
        return {name: _number(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_number(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value

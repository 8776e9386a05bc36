"""One CloudEvent as plain data, and the names that our own events follow.

Type `dev.wakeswap.<stage>.<outcome>.v1`, source `/wakeswap/<stage>`, subject = job id, and an id made from the
cause, so that the same cause always has the same reply. Knows the standard library and the JsonValue type.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.errors import JsonValue

_TYPE = re.compile(r"dev\.wakeswap\.(?P<stage>[a-z][a-z0-9_]*)\.(?P<outcome>completed|rejected|failed)\.v1")
_IDS = uuid.UUID("6f1b8d0e-52a7-5f0c-9c55-5d6a3a1c7e21")


class Kind(NamedTuple):
    """What an event of ours says: which stage ended how."""

    stage: str
    outcome: str
    """`completed`, `rejected` or `failed`."""


@dataclass(frozen=True)
class Event:
    """A CloudEvent 1.0. An empty string means that the attribute is absent (the specification has no empty ones)."""

    id: str
    source: str
    type: str
    subject: str = ""
    time: str = ""
    """RFC 3339, as it was sent."""
    datacontenttype: str = ""
    dataschema: str = ""
    extensions: Mapping[str, str | int | bool] = field(default_factory=dict)
    """Strings only after binary mode, whose headers carry no types."""
    data: JsonValue | bytes = None
    """A JSON value for JSON content types, a string for text, else bytes; None when there is none."""

    @property
    def tenant(self) -> str:
        """The tenant that intake set after authentication; empty on events from outside."""
        return str(self.extensions.get("tenantid", ""))

    @property
    def job(self) -> str:
        """The job's id; only meaningful for events of ours."""
        return self.subject

    @property
    def kind(self) -> Kind | None:
        """None for types that are not ours."""
        return parse_type(self.type)

    @property
    def digest(self) -> str:
        """32 hex digits of source and id: two deliveries with the same digest are one event.

        The copies of one event that a broker sends to dead letter for two subscribers are two: the subscriber that
        could not be reached (`knativeerrordest`) counts too.
        """
        lost = self.extensions.get("knativeerrordest")
        identity = f"{self.source}\n{self.id}" + (f"\n{lost}" if lost else "")
        return hashlib.sha256(identity.encode()).hexdigest()[:32]


def parse_type(text: str) -> Kind | None:
    match = _TYPE.fullmatch(text)
    return Kind(match["stage"], match["outcome"]) if match else None


def type_of(stage: str, outcome: str) -> str:
    """`stage` is the folder's name, with its underscores."""
    return f"dev.wakeswap.{stage}.{outcome}.v1"


def source_of(stage: str) -> str:
    return f"/wakeswap/{stage}"


def reply_id(stage: str, cause: Event, outcome: str, part: int = 0) -> str:
    """The id of a stage's reply: uuid5 of (stage, cause source, cause id, outcome, part).

    No attribute can hold a line break, so joining by line breaks keeps different causes apart.
    """
    return str(uuid.uuid5(_IDS, "\n".join((stage, cause.source, cause.id, outcome, str(part)))))

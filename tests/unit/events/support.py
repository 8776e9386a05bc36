"""What the tests of events share: building an event by hand, and saying which attribute must be blamed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from shared.errors import InvalidCloudEventError
from shared.events.codec import STRUCTURED, decode
from shared.events.event import Event

LIMIT = 1_048_576
PLAIN = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}


def binary(body: bytes = b"", **headers: str) -> Event:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return decode({**PLAIN, **named}, body, limit=LIMIT)


def envelope(**values: Any) -> Event:
    whole = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **values}
    return decode({"content-type": STRUCTURED}, json.dumps(whole).encode(), limit=LIMIT)


def refused(attribute: str, call: Callable[..., object], /, *args: object, **values: Any) -> None:
    with pytest.raises(InvalidCloudEventError) as caught:
        call(*args, **values)
    assert caught.value.context["attribute"] == attribute

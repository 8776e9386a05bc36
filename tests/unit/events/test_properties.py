"""Any event survives, nothing hostile breaks the decoder, and the CloudEvents SDK agrees."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

from cloudevents.core.bindings.http import (
    HTTPMessage,
    from_binary_event,
    from_structured_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidCloudEventError, JsonValue, RequestError
from shared.events.codec import STRUCTURED, decode, encode_binary, encode_structured, to_payload
from shared.events.event import Event
from shared.events.payloads import Job
from tests.unit.events.support import LIMIT, PLAIN

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,19}", fullmatch=True).filter(
    lambda name: name not in Event.__dataclass_fields__ and name != "specversion"
)
TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1, max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def valid_events(draw: st.DrawFn) -> Event:
    kind, data = draw(
        st.one_of(
            JSON.filter(lambda value: value is not None).map(lambda value: ("application/json", value)),
            TEXT.map(lambda value: ("text/plain", value)),
            st.binary(min_size=1, max_size=60).map(lambda value: ("application/octet-stream", value)),
            st.just(("", None)),
        )
    )
    return Event(
        id=draw(TEXT),
        source=draw(st.from_regex(r"/[a-z0-9/._-]{1,20}", fullmatch=True)),
        type=draw(TEXT),
        subject=draw(TEXT | st.just("")),
        time=draw(st.just("") | st.just("2026-11-30T10:15:00.5Z")),
        datacontenttype=kind,
        extensions=draw(st.dictionaries(NAMES, TEXT, max_size=3)),
        data=data,
    )


@given(valid_events())
def test_every_valid_event_survives_both_modes(event: Event) -> None:
    assert decode(*encode_binary(event), limit=LIMIT) == event
    assert decode(*encode_structured(event), limit=LIMIT) == event


HOSTILE = st.text(max_size=20) | st.sampled_from(
    ["1.0", "0.3", STRUCTURED, "application/json; charset=x", "%", '"', "%ff"]
)
HEADERS = st.dictionaries(
    st.sampled_from([*PLAIN, "content-type", "ce-time", "ce-subject", "ce-data", "CE-ID", "ce-x"])
    | st.text(max_size=8),
    HOSTILE,
    max_size=8,
)
ENVELOPES = st.dictionaries(
    st.sampled_from(["specversion", "id", "source", "type", "time", "data", "data_base64", "datacontenttype"])
    | st.text(max_size=8),
    JSON | HOSTILE,
    max_size=9,
).map(lambda value: json.dumps(value).encode())


@given(HEADERS, st.binary(max_size=60) | ENVELOPES, st.booleans(), st.booleans())
def test_whatever_comes_in_only_our_errors_come_out(
    headers: dict[str, str], body: bytes, enough: bool, structured: bool
) -> None:
    sent = {**headers, **(PLAIN if enough else {}), **({"content-type": STRUCTURED} if structured else {})}
    event = None
    with suppress(RequestError):
        event = decode(sent, body, limit=LIMIT)
    if event:
        assert event.id
        with suppress(InvalidCloudEventError):
            to_payload(event, Job)


# The SDK's opinion


@given(valid_events())
def test_the_sdk_reads_what_we_write(event: Event) -> None:
    for encode, read in ((encode_binary, from_binary_event), (encode_structured, from_structured_event)):
        headers, body = encode(event)
        theirs = read(HTTPMessage(headers, body))
        assert (theirs.get_id(), theirs.get_source(), theirs.get_type()) == (event.id, event.source, event.type)
        assert theirs.get_subject() == (event.subject or None)
        assert all(theirs.get_extension(name) == value for name, value in event.extensions.items())


@given(valid_events(), st.dictionaries(TEXT, JSON, max_size=4))
def test_we_read_what_the_sdk_writes(event: Event, data: dict[str, JsonValue]) -> None:
    event = replace(event, datacontenttype="application/json", data=data)
    attributes = {"id": event.id, "source": event.source, "type": event.type, "datacontenttype": event.datacontenttype}
    if event.subject:
        attributes["subject"] = event.subject
    theirs = CloudEvent({**attributes, **event.extensions}, data)
    for write in (to_binary_event, to_structured_event):
        message = write(theirs)
        ours = decode(message.headers, message.body, limit=LIMIT)
        assert replace(ours, time="") == replace(event, time="")

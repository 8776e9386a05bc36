"""Data by its content type, what is sent, and payloads."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from shared.errors import InvalidCloudEventError, JsonValue
from shared.events.codec import decode, encode_binary, encode_structured, from_payload, to_payload
from shared.events.event import Event
from shared.events.payloads import Face, Faces, Job, ObjectRef, Rejection
from shared.records import loads
from tests.unit.events.support import LIMIT, binary, envelope, refused


@pytest.mark.parametrize(
    ("content_type", "body", "data"),
    [
        ("application/json", b'{"a":1}', {"a": 1}),
        ("application/json", b'\xef\xbb\xbf"bom"', "bom"),
        ("application/problem+json; charset=utf-8", b"[1]", [1]),
        ("text/json", b"true", True),
        ("application/json; charset=iso-8859-1", b'"\xe9"', "é"),
        ("text/plain", "é".encode(), "é"),
        ("text/plain; charset=UTF-16LE", "é".encode("utf-16-le"), "é"),
        ("image/png", b"text?", b"text?"),
        ("application/octet-stream", b"\xff", b"\xff"),
    ],
)
def test_the_content_type_decides_what_data_is(content_type: str, body: bytes, data: JsonValue | bytes) -> None:
    event = binary(body, content_type=content_type)
    assert event.data == data
    assert decode(*encode_binary(event), limit=LIMIT) == event
    assert decode(*encode_structured(event), limit=LIMIT) == event


def test_structured_data_that_is_not_json_must_be_text() -> None:
    assert envelope(datacontenttype="application/xml", data="<é/>").data == "<é/>".encode()
    refused("data", envelope, datacontenttype="text/plain", data={"a": 1})
    refused("data_base64", envelope, data_base64=5)


def test_implied_json_is_made_explicit() -> None:
    assert envelope(data="just a string").datacontenttype == "application/json"
    assert encode_binary(envelope(data="just a string"))[1] == b'"just a string"'


def test_equal_events_give_equal_bytes() -> None:
    one = Event("1", "/s", "t", extensions={"b": "1", "a": "2"}, data={"y": 1, "x": [1.5, None]})
    two = Event("1", "/s", "t", extensions={"a": "2", "b": "1"}, data={"x": [1.5, None], "y": 1})
    assert encode_structured(one) == encode_structured(two)
    assert encode_binary(one) == encode_binary(two)


def test_nothing_invalid_is_sent() -> None:
    refused("id", encode_binary, Event("", "/s", "t"))
    refused("time", encode_structured, Event("1", "/s", "t", time="today"))
    refused("subject", encode_binary, Event("1", "/s", "t", extensions={"subject": "x"}))
    refused("datacontenttype", encode_binary, Event("1", "/s", "t", datacontenttype="image/png", data={}))


REF = ObjectRef("tenants/demo/inbox/a.png", "0" * 64, 1, "image/png")
JOB = Job("job", (REF, REF), REF)
FACES = Faces("job", JOB, Face(1, 2, 3, 4, 0.5), (), REF)


def carrying(data: JsonValue) -> Event:
    return Event("1", "/s", "t", "job", data=data)


def test_payloads_survive_the_way() -> None:
    for payload in (JOB, FACES, Rejection("job", "swap", "c", "d", 422, {"boxes": [[1, 2.5]], "deep": {"a": None}})):
        event = carrying(from_payload(payload))
        assert to_payload(decode(*encode_binary(event), limit=LIMIT), type(payload)) == payload
        assert to_payload(decode(*encode_structured(event), limit=LIMIT), type(payload)) == payload


def test_unknown_names_are_ignored_and_defaults_filled_in() -> None:
    data = loads(encode_binary(carrying(from_payload(JOB)))[1])
    assert isinstance(data, dict)
    del data["options"], data["created"]
    assert to_payload(carrying({**data, "new": {"x": 1}}), Job) == JOB


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"request": None}, "request"),
        ({"source_face": {"x": 1}}, "source_face.y"),
        ({"target_faces": [{"x": 1, "y": 1, "width": 1, "height": 1, "score": "1"}]}, "target_faces[0].score"),
        ({"target_faces": {}}, "target_faces"),
        ({"landmarks": {**vars(REF), "size": True}}, "landmarks.size"),
        ({"landmarks": {**vars(REF), "size": 1.0}}, "landmarks.size"),
        ({"landmarks": {**vars(REF), "key": None}}, "landmarks.key"),
        ({"landmarks": {**vars(REF), "key": "\ud800"}}, "landmarks.key"),
        ({"source_face": {"x": 10**400, "y": 1, "width": 1, "height": 1, "score": 1}}, "source_face.x"),
    ],
)
def test_wrong_fields_are_named_by_their_path(change: dict[str, Any], field: str) -> None:
    data = from_payload(FACES)
    assert isinstance(data, dict)
    with pytest.raises(InvalidCloudEventError) as caught:
        to_payload(carrying({**data, **change}), Faces)
    assert caught.value.context == {"attribute": "data", "field": field}


def test_the_subject_and_the_data_must_name_the_same_job() -> None:
    with pytest.raises(InvalidCloudEventError, match="another job"):
        to_payload(replace(carrying(from_payload(JOB)), subject="other"), Job)


@pytest.mark.parametrize("data", [b"\x00", [1], "text", 1])
def test_data_that_is_no_object(data: JsonValue | bytes) -> None:
    with pytest.raises(InvalidCloudEventError):
        to_payload(Event("1", "/s", "t", "job", data=data), Job)


def test_numbers_that_are_none_never_leave() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_binary(Event("1", "/s", "t", data={"x": math.nan}))

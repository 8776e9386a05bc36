"""CloudEvents as a broker reads and writes them."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.local.eventing.cloudevent import CloudEvent, InvalidEventError, binary, is_event, read_event, structured

REQUIRED = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
HEADERS = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), ("ce-type", "t")]
JSON_FORMAT = [("Content-Type", "application/cloudevents+json; charset=utf-8")]


def test_binary_in() -> None:
    event = read_event([*HEADERS, ("CE-Media", "image"), ("Content-Type", "image/png"), ("Host", "x")], b"\x00\xff")
    assert dict(event.attributes) == {**REQUIRED, "media": "image", "datacontenttype": "image/png"}
    assert event.data == b"\x00\xff"
    assert (event.id, event.source, event.type, event.subject) == ("1", "/s", "t", None)


def test_binary_without_data() -> None:
    assert read_event(HEADERS, b"").data is None


@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro \u20ac \U0001f600"),
        ("Euro%20%e2%82%ac", "Euro \u20ac"),
        ("%41b", "Ab"),
        ('"quoted \\"text\\""', 'quoted "text"'),
        ("100%", "100%"),
    ],
)
def test_header_values_are_decoded(value: str, decoded: str) -> None:
    assert read_event([*HEADERS, ("ce-subject", value)], b"").subject == decoded


def test_structured_in() -> None:
    body = {**REQUIRED, "count": 3, "live": True, "gone": None, "data": {"k": ["\u00fc", 1.5]}}
    event = read_event(JSON_FORMAT, json.dumps(body).encode())
    assert dict(event.attributes) == {**REQUIRED, "count": "3", "live": "true", "datacontenttype": "application/json"}
    assert event.data == '{"k":["\u00fc",1.5]}'.encode()


def test_structured_utf_16_and_text_and_base64() -> None:
    text = {**REQUIRED, "datacontenttype": "text/plain", "data": "a\u00fc"}
    assert read_event(JSON_FORMAT, json.dumps(text).encode("utf-16")).data == "a\u00fc".encode()
    binary_data = {**REQUIRED, "datacontenttype": "image/png", "data_base64": base64.b64encode(b"\x00\xff").decode()}
    assert read_event(JSON_FORMAT, json.dumps(binary_data).encode()).data == b"\x00\xff"


@pytest.mark.parametrize("name", ["specversion", "id", "source", "type"])
@pytest.mark.parametrize("empty", [False, True])
def test_required_attributes(name: str, empty: bool) -> None:
    headers = [(key, "" if key == f"ce-{name}" else value) for key, value in HEADERS if empty or key != f"ce-{name}"]
    with pytest.raises(InvalidEventError, match=name) as caught:
        read_event(headers, b"")
    assert caught.value.status == 400
    document = {key: "" if key == name else value for key, value in REQUIRED.items() if empty or key != name}
    with pytest.raises(InvalidEventError, match=name):
        read_event(JSON_FORMAT, json.dumps(document).encode())


@pytest.mark.parametrize(
    "extra",
    [
        ("ce-specversion", "0.3"),
        ("ce-data", "x"),
        ("ce-image_ref", "x"),
        ("ce-datacontenttype", "text/plain"),
        ("ce-subject", "a%0Ab"),
        ("ce-subject", "%ff"),
        ("ce-subject", "\udcff"),
        ("ce-time", "yesterday"),
    ],
)
def test_bad_binary(extra: tuple[str, str]) -> None:
    with pytest.raises(InvalidEventError):
        read_event([*HEADERS, extra], b"")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe\xfd",
        b"[" * 100_000,
        json.dumps({**REQUIRED, "data": float("nan")}).encode(),
        json.dumps({**REQUIRED, "extra": {"nested": 1}}).encode(),
        json.dumps({**REQUIRED, "extra": 1.5}).encode(),
        json.dumps({**REQUIRED, "Media": "x"}).encode(),
        json.dumps({**REQUIRED, "id": "a\ud800"}).encode(),
        json.dumps({**REQUIRED, "data": "\ud800"}).encode(),
        json.dumps({**REQUIRED, "data": 1, "data_base64": "AA=="}).encode(),
        json.dumps({**REQUIRED, "data_base64": "A*=="}).encode(),
        json.dumps({**REQUIRED, "time": "2026-13"}).encode(),
    ],
)
def test_bad_structured(body: bytes) -> None:
    with pytest.raises(InvalidEventError) as caught:
        read_event(JSON_FORMAT, body)
    assert caught.value.status == 400


def test_batches_are_415() -> None:
    with pytest.raises(InvalidEventError) as caught:
        read_event([("Content-Type", "application/cloudevents-batch+json")], b"[]")
    assert caught.value.status == 415


def test_is_event() -> None:
    assert is_event({"ce-specversion": "1.0"})
    assert is_event({"content-type": "Application/CloudEvents+json"})
    assert not is_event({"content-type": "application/json"})
    assert not is_event({})


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1)


@given(subject=TEXT, data=st.binary())
def test_both_modes_carry_any_event_unharmed(subject: str, data: bytes) -> None:
    event = CloudEvent({**REQUIRED, "subject": subject, "datacontenttype": "application/octet-stream"}, data or None)
    headers, body = binary(event)
    assert all(value.isascii() and value.isprintable() for value in headers.values())
    assert read_event(headers.items(), body) == event
    headers, body = structured(event)
    assert read_event(headers.items(), body) == event


@pytest.mark.parametrize(
    ("content_type", "data", "member"),
    [
        ("application/json", b'{"a": 1}', {"data": {"a": 1}}),
        ("application/problem+json; charset=utf-8", b"[1]", {"data": [1]}),
        ("application/json", b"{", {"data_base64": "ew=="}),
        ("text/plain", b"hi", {"data": "hi"}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}),
        ("image/png", b"hi", {"data_base64": "aGk="}),
    ],
)
def test_structured_data_member(content_type: str, data: bytes, member: dict[str, object]) -> None:
    event = CloudEvent({**REQUIRED, "datacontenttype": content_type}, data)
    assert json.loads(structured(event)[1]) == {**REQUIRED, "datacontenttype": content_type, **member}

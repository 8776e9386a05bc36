"""The rules of CloudEvents 1.0.2 for attributes and modes that decoders get wrong."""

from __future__ import annotations

import pytest

from shared.errors import InvalidCloudEventError, UnsupportedContentTypeError
from shared.events.codec import STRUCTURED, decode, encode_binary
from tests.unit.events.support import LIMIT, PLAIN, binary, envelope, refused


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),
        ("Euro%20%e2%82%ac", "Euro €"),
        ("%61b", "ab"),
        ('"a b"', "a b"),
        (r'"a \"b\" \\"', 'a "b" \\'),
        ('"Euro %E2%82%AC"', "Euro €"),
        ("a+b", "a+b"),
        ("%2541", "%41"),
    ],
)
def test_headers_are_unquoted_and_percent_decoded_once(header: str, value: str) -> None:
    assert binary(ce_subject=header).subject == value


@pytest.mark.parametrize(
    "header",
    ["%C0%A0", "%FF", "%E2%82", "%ED%A0%80", "50%", "%4", "%zz", "é", "a%0D%0Ax", "a%00", "%7F", "%C2%85", "%EF%BF%BE"],
)
def test_headers_that_are_not_utf_8_or_hold_control_characters_are_refused(header: str) -> None:
    refused("subject", binary, ce_subject=header)


def test_header_names_have_no_case_but_may_not_stand_twice() -> None:
    headers = {name.upper(): value for name, value in PLAIN.items()}
    assert decode(headers, b"", limit=LIMIT) == binary()
    refused("ce-id", lambda: decode({**PLAIN, "CE-ID": "2"}, b"", limit=LIMIT))


@pytest.mark.parametrize("name", ["ce-data", "ce-data_base64", "ce-image-ref", "ce-", "ce-datacontenttype"])
def test_binary_attribute_names(name: str) -> None:
    refused(name.removeprefix("ce-"), lambda: decode({**PLAIN, name: "x"}, b"", limit=LIMIT))


@pytest.mark.parametrize("name", ["Data", "tenantId", "tenant_id", "tenant-id", "", "ä", "a b", "\ud800"])
def test_structured_attribute_names(name: str) -> None:
    with pytest.raises(InvalidCloudEventError):
        envelope(**{name: "x"})


def test_long_names_are_taken_from_others_but_never_sent() -> None:
    event = envelope(a23456789012345678901="x")
    assert event.extensions == {"a23456789012345678901": "x"}
    refused("a23456789012345678901", encode_binary, event)


@pytest.mark.parametrize(
    "value", [{}, {"a": 1}, [], ["a"], 1.5, 2**31, -(2**31) - 1, "a\nb", "\x00", "\ud800", "\ufdd0", "\U0001ffff"]
)
def test_extension_values(value: object) -> None:
    refused("extra", envelope, extra=value)


@pytest.mark.parametrize("value", ["", "x", "é", True, False, 0, 2**31 - 1, -(2**31)])
def test_extension_values_keep_their_type_in_structured_mode(value: object) -> None:
    kept = envelope(extra=value).extensions["extra"]
    assert kept == value
    assert type(kept) is type(value)


def test_null_attributes_are_absent_ones() -> None:
    assert envelope(subject=None, extra=None) == envelope()
    refused("id", envelope, id=None)


@pytest.mark.parametrize("name", ["id", "source", "type", "subject", "time", "datacontenttype", "dataschema"])
@pytest.mark.parametrize("value", [1, True, {}, []])
def test_standard_attributes_are_strings(name: str, value: object) -> None:
    refused(name, envelope, **{name: value})


@pytest.mark.parametrize(
    "time",
    ["2026-11-30T10:15:00Z", "2026-11-30t10:15:00z", "2026-11-30T10:15:00.123456789+05:30", "2024-02-29T23:59:60Z"],
)
def test_time_is_kept_as_it_was_sent(time: str) -> None:
    assert envelope(time=time).time == time
    assert binary(ce_time=time).time == time


@pytest.mark.parametrize(
    "time",
    [
        "2026-11-30",
        "2026-11-30T10:15:00",
        "2026-11-30 10:15:00Z",
        "20261130T101500Z",
        "2026-02-30T10:15:00Z",
        "2026-13-01T10:15:00Z",
        "2026-11-30T24:00:00Z",
        "2026-11-30T10:15:00+24:00",
        "2026-11-30T10:15:00,5Z",
        "٢٠٢٦-11-30T10:15:00Z",
        "now",
    ],
)
def test_other_times_are_refused(time: str) -> None:
    refused("time", envelope, time=time)


@pytest.mark.parametrize(
    "source", ["/a/b", "urn:uuid:1", "mailto:x@y", "1-555-123-4567", "https://h/%C3%A9?a=b#c", "arn:aws:s3:::b"]
)
def test_sources(source: str) -> None:
    assert envelope(source=source).source == source


@pytest.mark.parametrize("source", ["a b", "é", "/a\\b", "/a|b", "/100%", "<x>", '"'])
def test_sources_that_are_no_uri_reference(source: str) -> None:
    refused("source", envelope, source=source)


def test_dataschema_is_absolute() -> None:
    assert envelope(dataschema="https://h/s").dataschema == "https://h/s"
    refused("dataschema", envelope, dataschema="/s")


@pytest.mark.parametrize(
    "content_type", ["json", "application/", "a/b;x", "a/b; c=", "a/b\n", "a b/c", "a/b " + "; " * 60 + "!"]
)
def test_content_types_that_are_none(content_type: str) -> None:
    refused("datacontenttype", envelope, datacontenttype=content_type)


def test_the_content_type_decides_the_mode_before_stray_headers_do() -> None:
    body = b'{"specversion":"1.0","id":"inner","source":"/s","type":"t"}'
    assert decode({**PLAIN, "content-type": STRUCTURED}, body, limit=LIMIT).id == "inner"


@pytest.mark.parametrize(
    "kind", ["application/cloudevents", "application/cloudevents+avro", "application/cloudevents+xml"]
)
def test_other_event_formats_are_not_guessed(kind: str) -> None:
    with pytest.raises(UnsupportedContentTypeError):
        decode({**PLAIN, "content-type": kind}, b"{}", limit=LIMIT)


def test_a_plain_post_is_no_event() -> None:
    refused("specversion", lambda: decode({"content-type": "application/json"}, b"{}", limit=LIMIT))
    refused("specversion", lambda: decode({}, b"", limit=LIMIT))


@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b"[1,]", b"NaN", b'{"a":1e999}', b'{"a":1,"a":2}', b"[" * 100 + b"]" * 100, b"[" * 100_000]
)
def test_broken_json_is_refused_in_both_modes(body: bytes) -> None:
    refused("data", lambda: binary(body, content_type="application/json"))
    refused("body", lambda: decode({"content-type": STRUCTURED}, body, limit=LIMIT))

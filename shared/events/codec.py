"""CloudEvents over HTTP: binary and structured mode in, either out, and our payloads in their data.

Written against the texts of CloudEvents 1.0.2 (HTTP binding, JSON format). The SDK is not used at run time: every
rule would have to be checked before it (it invents missing ids, takes a structured event with stray headers for a
binary one, and replaces bad UTF-8); the tests use it as the second opinion. Knows the Event, the payloads and the
error tree.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote, unquote_to_bytes

from shared.errors import (
    BatchUnsupportedError,
    EmptyDataError,
    InvalidCloudEventError,
    JsonValue,
    PayloadTooLargeError,
    UnsupportedContentTypeError,
)
from shared.events import attributes, content
from shared.events.attributes import invalid
from shared.events.event import Event
from shared.events.payloads import Payload
from shared.records import RecordError, dumps, read, write

P = TypeVar("P", bound=Payload)

MAX_BYTES = 65536
"""Largest event that every intermediary must forward (spec, "Size Limits"); ours are never larger."""
STRUCTURED = "application/cloudevents+json"

_PREFIX = "ce-"
_OCTETS = "application/octet-stream"
_LONGEST_NAME = 20
# HTTP binding 3.1.3.2: everything printable but space, double quote and percent.
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decode(headers: Mapping[str, str], body: bytes, *, limit: int) -> Event:
    """The event of a request or a reply; `limit` is the largest body in bytes.

    Raises PayloadTooLargeError, BatchUnsupportedError, UnsupportedContentTypeError, UnsupportedSpecVersionError, and
    InvalidCloudEventError whose context names the attribute.
    """
    if len(body) > limit:
        raise PayloadTooLargeError(f"An event has at most {limit} bytes.", context={"limit": limit})
    fields = _lower(headers)
    content_type = fields.get("content-type", "")
    kind = content.media_type(content_type)
    if kind.startswith("application/cloudevents-batch"):
        raise BatchUnsupportedError("Send the events one by one.")
    if not kind.startswith("application/cloudevents"):
        return _decode_binary(fields, body)
    if kind != STRUCTURED:
        raise UnsupportedContentTypeError(f"Structured events are understood as {STRUCTURED} only.")
    return _decode_structured(content_type, body)


def encode_binary(event: Event) -> tuple[dict[str, str], bytes]:
    """Headers and body. Raises InvalidCloudEventError, PayloadTooLargeError."""
    values = _attributes(event)
    body = content.write(event.data, str(values.get("datacontenttype", "")))
    headers = {}
    for name, value in values.items():
        if name == "datacontenttype":
            headers["content-type"] = str(value)
        else:
            headers[_PREFIX + name] = quote(_canonical(value), safe=_SAFE)
    _check_size(len(body) + sum(len(name) + len(value) + 4 for name, value in headers.items()))
    return headers, body


def encode_structured(event: Event) -> tuple[dict[str, str], bytes]:
    """Headers and body; equal events give equal bytes. Raises InvalidCloudEventError, PayloadTooLargeError."""
    envelope: dict[str, object] = {**_attributes(event)}
    if isinstance(event.data, bytes):
        envelope["data_base64"] = base64.b64encode(event.data).decode()
    elif event.data is not None:
        envelope["data"] = event.data
    body = dumps(envelope)
    _check_size(len(body))
    return {"content-type": STRUCTURED}, body


def to_payload(event: Event, kind: type[P]) -> P:
    """The event's data as the payload `kind`, whose job must be the event's subject.

    Raises EmptyDataError, and InvalidCloudEventError whose context names the field.
    """
    if event.data in (None, "", b""):
        raise EmptyDataError(context={"attribute": "data"})
    if isinstance(event.data, bytes):
        raise invalid("datacontenttype", "the data must be JSON")
    try:
        payload = read(kind, event.data)
    except RecordError as error:
        context: dict[str, JsonValue] = {"attribute": "data", "field": error.path}
        raise InvalidCloudEventError(f"data: {error}", context=context) from error
    if payload.job != event.subject:
        raise invalid("subject", "names another job than the data")
    return payload


def from_payload(payload: Payload) -> JsonValue:
    """The payload as an event's data, every field written."""
    return write(payload)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, value in headers.items():
        if fields.setdefault(name.lower(), value) != value:
            raise invalid(name.lower(), "the header is sent twice")
    return fields


def _decode_binary(fields: Mapping[str, str], body: bytes) -> Event:
    values: dict[str, JsonValue] = {}
    for header, text in fields.items():
        if header.startswith(_PREFIX):
            name = header.removeprefix(_PREFIX)
            values[name] = _decode_header(name, text)
    if "datacontenttype" in values:
        raise invalid("datacontenttype", "binary mode carries it as Content-Type")
    content_type = fields.get("content-type", "").strip() or (content.JSON if body else "")
    event = attributes.build({**values, "datacontenttype": content_type or None})
    return replace(event, data=content.read(body, content_type))


def _decode_header(name: str, text: str) -> str:
    """HTTP binding 3.1.3.2: unquote, then one round of percent-decoding; bad UTF-8 is refused."""
    quoted = _QUOTED.fullmatch(text.strip())
    plain = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else text.strip()
    if not plain.isascii() or _BROKEN_ESCAPE.search(plain):
        raise invalid(name, "the header is not percent-encoded")
    try:
        return unquote_to_bytes(plain).decode()
    except UnicodeDecodeError:
        raise invalid(name, "the header is not UTF-8") from None


def _decode_structured(content_type: str, body: bytes) -> Event:
    text = content.decode_text(body, content_type, "body")
    envelope = content.parse_json(text, "body")
    if not isinstance(envelope, dict):
        raise invalid("body", "is not a JSON object")
    data, encoded = envelope.pop("data", None), envelope.pop("data_base64", None)
    if data is not None and encoded is not None:
        raise invalid("data", "data and data_base64 exclude each other")
    if data is not None and envelope.get("datacontenttype") is None:
        envelope["datacontenttype"] = content.JSON
    event = attributes.build(envelope)
    return replace(event, data=_structured_data(event.datacontenttype, data, encoded))


def _structured_data(content_type: str, data: JsonValue, encoded: JsonValue) -> JsonValue | bytes:
    if encoded is not None:
        return content.read(_base64(encoded), content_type)
    if data is None or content.is_json(content_type):
        return data
    if not isinstance(data, str):
        raise invalid("data", "is not a string, and the content type is not JSON")
    return data if content.is_text(content_type) else content.write(data, content_type)


def _base64(encoded: JsonValue) -> bytes:
    try:
        return base64.b64decode(encoded if isinstance(encoded, str) else "?", validate=True)
    except (binascii.Error, ValueError):
        raise invalid("data_base64", "is not base64 (RFC 4648)") from None


def _attributes(event: Event) -> dict[str, attributes.Attribute]:
    values = attributes.collect(event)
    for name in values:
        if len(name) > _LONGEST_NAME:
            raise invalid(name, f"our own names have at most {_LONGEST_NAME} characters")
    if event.data is not None:
        values.setdefault("datacontenttype", _OCTETS if isinstance(event.data, bytes) else content.JSON)
    return values


def _canonical(value: attributes.Attribute) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        raise PayloadTooLargeError(
            f"The event would have {size} bytes; every broker forwards only {MAX_BYTES}. Larger data belongs in the"
            " object store, and its reference in the event.",
            context={"size": size, "limit": MAX_BYTES},
        )

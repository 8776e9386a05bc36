"""What lies between the bytes of an event's data and its value: content type, character set, JSON.

Knows the error tree, `shared.records` for JSON, and which attribute to blame.
"""

from __future__ import annotations

import re

from shared.errors import JsonValue, UnsupportedContentTypeError
from shared.events.attributes import invalid
from shared.records import dumps, loads

JSON = "application/json"

_CHARSET = re.compile(r';[ \t]*charset="?([^";\s]+)', re.IGNORECASE)
_CHARSETS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "iso-8859-1": "latin-1",
    "utf-16": "utf-16",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "utf-32": "utf-32",
}
"""By IANA name; an allow-list, since Python's own codecs include some that are no character sets."""


def media_type(content_type: str) -> str:
    """`type/subtype` in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    kind = media_type(content_type)
    return kind.endswith(("/json", "+json"))


def is_text(content_type: str) -> bool:
    return not is_json(content_type) and content_type.lower().startswith("text/")


def decode_text(body: bytes, content_type: str, attribute: str) -> str:
    """The body in its character set, UTF-8 when none is named.

    Raises UnsupportedContentTypeError for a character set that is not known, InvalidCloudEventError blaming
    `attribute` for bytes that are not in it.
    """
    try:
        return body.decode(_charset(content_type))
    except UnicodeDecodeError:
        raise invalid(attribute, "the bytes are not in the character set of the content type") from None


def parse_json(text: str, attribute: str) -> JsonValue:
    try:
        return loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise invalid(attribute, f"not valid JSON ({error})") from None


def read(body: bytes, content_type: str) -> JsonValue | bytes:
    """A JSON value, a string for text/*, else the bytes; None for an empty body."""
    if not body:
        return None
    if is_json(content_type):
        return parse_json(decode_text(body, content_type, "data"), "data")
    return decode_text(body, content_type, "data") if is_text(content_type) else body


def write(data: JsonValue | bytes, content_type: str) -> bytes:
    """The inverse of `read`, always with the same bytes for the same value."""
    if data is None or isinstance(data, bytes):
        return data or b""
    if is_json(content_type):
        return _encode(dumps(data).decode(), content_type)
    if not isinstance(data, str):
        raise invalid("datacontenttype", "only JSON content types can carry a JSON value")
    return _encode(data, content_type)


def _encode(text: str, content_type: str) -> bytes:
    try:
        return text.encode(_charset(content_type))
    except UnicodeEncodeError:
        raise invalid("data", "the text is not in the character set of the content type") from None


def _charset(content_type: str) -> str:
    match = _CHARSET.search(content_type)
    name = match[1].lower() if match else "utf-8"
    if name not in _CHARSETS:
        raise UnsupportedContentTypeError(f"The character set {name[:40]!a} is not supported.")
    return _CHARSETS[name]

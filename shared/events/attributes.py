"""The rules of CloudEvents 1.0.2 for context attributes, for every binding.

The SDK (cloudevents 2.2) lets most of these faults through, or mends them by inventing an id or a time, which
would break idempotency; so each rule stands here. Knows the Event and the error tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date

from shared.errors import InvalidCloudEventError, JsonValue, UnsupportedSpecVersionError
from shared.events.event import Event

Attribute = str | int | bool

VERSION = "1.0"
_REQUIRED = ("specversion", "id", "source", "type")
_OPTIONAL = ("subject", "time", "datacontenttype", "dataschema")

_NAME = re.compile(r"[a-z0-9]+")
# Spec, "Type System": control characters, lone surrogates and noncharacters have no place in a String.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000))
    + "]"
)
_URI_REFERENCE = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.+")
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?"
    r"(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"  # noqa: S105 - a token of RFC 9110, not a secret
_PARAMETER = rf'[ \t]*;(?:[ \t]*{_TOKEN}=(?:{_TOKEN}|"(?:[^"\\]|\\.)*"))?'
_MEDIA_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(?:{_PARAMETER})*[ \t]*")


def invalid(attribute: str, problem: str) -> InvalidCloudEventError:
    """The error for one attribute; a name from outside is cut and escaped before it is shown."""
    name = ascii(attribute)[1:-1][:64]
    return InvalidCloudEventError(f"{name}: {problem}", context={"attribute": name})


def build(values: Mapping[str, JsonValue]) -> Event:
    """The event with these attributes and no data yet; null ones count as absent.

    Raises InvalidCloudEventError whose context names the attribute, UnsupportedSpecVersionError.
    """
    present = {name: _value(name, value) for name, value in values.items() if value is not None}
    _check_required(present)
    for name, check in _CHECKS.items():
        if name in present:
            check(name, _text(name, present[name]))
    known = {name: str(present.pop(name)) for name in (*_REQUIRED, *_OPTIONAL) if name in present}
    del known["specversion"]
    return Event(**known, extensions=present)


def collect(event: Event) -> dict[str, Attribute]:
    """Every attribute of a valid event, sorted by name; raises like `build`, so nothing invalid is ever sent."""
    values: dict[str, Attribute] = {"specversion": VERSION, **event.extensions}
    for name in (*_REQUIRED[1:], *_OPTIONAL):
        if name in event.extensions:
            raise invalid(name, "is no name for an extension")
        if text := getattr(event, name):
            values[name] = text
    build(values)
    return dict(sorted(values.items()))


def _value(name: str, value: JsonValue) -> Attribute:
    if not _NAME.fullmatch(name) or name == "data":
        raise invalid(name, "an attribute's name has only lower-case letters and digits, and is not data")
    if isinstance(value, str):
        if _FORBIDDEN.search(value):
            raise invalid(name, "holds a character that is not allowed")
        return value
    if isinstance(value, int):
        if not -(2**31) <= value < 2**31:
            raise invalid(name, "is outside the range of an Integer (32 bits)")
        return value
    raise invalid(name, "is neither string, integer nor boolean")


def _check_required(present: Mapping[str, Attribute]) -> None:
    version = present.get("specversion")
    if version not in (None, "", VERSION):
        raise UnsupportedSpecVersionError(
            f"Only CloudEvents {VERSION} is understood.", context={"attribute": "specversion"}
        )
    for name in _REQUIRED:
        if name not in present:
            raise invalid(name, "is missing")


def _text(name: str, value: Attribute) -> str:
    if not isinstance(value, str):
        raise invalid(name, "is not a string")
    if not value:
        raise invalid(name, "is empty")
    return value


def _check_plain(name: str, value: str) -> None:
    """Any allowed text will do."""


def _check_reference(name: str, value: str) -> None:
    if not _URI_REFERENCE.fullmatch(value):
        raise invalid(name, "is not a URI reference (RFC 3986)")


def _check_uri(name: str, value: str) -> None:
    _check_reference(name, value)
    if not _URI.fullmatch(value):
        raise invalid(name, "is not a URI (RFC 3986)")


def _check_time(name: str, value: str) -> None:
    match = _TIME.fullmatch(value)
    if not match or not _is_date(*map(int, match.groups())):
        raise invalid(name, "is not a timestamp of RFC 3339")


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _check_media_type(name: str, value: str) -> None:
    if not _MEDIA_TYPE.fullmatch(value):
        raise invalid(name, "is not a media type (RFC 2046)")


_CHECKS: Mapping[str, Callable[[str, str], None]] = {
    "specversion": _check_plain,
    "id": _check_plain,
    "source": _check_reference,
    "type": _check_plain,
    "subject": _check_plain,
    "time": _check_time,
    "datacontenttype": _check_media_type,
    "dataschema": _check_uri,
}

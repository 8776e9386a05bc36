"""CloudEvents 1.0 over HTTP as far as a broker needs them: read, checked, passed on with the data untouched.

Attributes are texts throughout, as in HTTP headers. Written from the HTTP protocol binding and the JSON format of
the specification; knows no SDK and no event type.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

STRUCTURED = "application/cloudevents"
BATCH = "application/cloudevents-batch"

_REQUIRED = ("specversion", "id", "source", "type")
_NAME = re.compile(r"[a-z0-9]+")
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_JSON_TYPE = re.compile(r"[^/]+/([^;]+\+)?json\s*(;.*)?", re.IGNORECASE)
# Header values keep U+0021 to U+007E except the quote and the percent sign (HTTP binding, 3.1.3.2).
_KEPT = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


class InvalidEventError(ValueError):
    """Not a CloudEvent that a broker may accept; `status` is the HTTP answer for its sender."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """One event: `attributes` holds all of them (specversion and datacontenttype too), `data` the bytes."""

    attributes: Mapping[str, str]
    data: bytes | None = None

    @property
    def id(self) -> str:
        """The id, unique within the source."""
        return self.attributes["id"]

    @property
    def source(self) -> str:
        """The source, a URI reference."""
        return self.attributes["source"]

    @property
    def type(self) -> str:
        """The type."""
        return self.attributes["type"]

    @property
    def subject(self) -> str | None:
        """The subject, None when absent."""
        return self.attributes.get("subject")

    def extended(self, extensions: Mapping[str, str]) -> "CloudEvent":
        """A copy with these attributes set."""
        return CloudEvent({**self.attributes, **extensions}, self.data)

    def without(self, name: str) -> "CloudEvent":
        """A copy that lacks the attribute `name`."""
        return CloudEvent({key: value for key, value in self.attributes.items() if key != name}, self.data)


def is_event(headers: Mapping[str, str]) -> bool:
    """True where the headers (names in lower case) announce a CloudEvent in any mode."""
    return "ce-specversion" in headers or _media(headers).startswith(STRUCTURED)


def read_event(headers: Iterable[tuple[str, str]], body: bytes) -> CloudEvent:
    """The event of a request or an answer; InvalidEventError with 400, or 415 for a batch."""
    lowered = {name.lower(): value for name, value in headers}
    media = _media(lowered)
    if media.startswith(BATCH):
        raise InvalidEventError("batches are not supported: send one event a request", 415)
    event = _read_structured(body) if media.startswith(STRUCTURED) else _read_binary(lowered, body)
    _check(event.attributes)
    return event


def binary(event: CloudEvent) -> tuple[dict[str, str], bytes]:
    """Headers and body in binary content mode."""
    headers = {f"ce-{name}": quote(value, safe=_KEPT) for name, value in event.attributes.items()}
    content_type = headers.pop("ce-datacontenttype", None)
    if content_type is not None:
        headers["content-type"] = event.attributes["datacontenttype"]
    return headers, event.data or b""


def structured(event: CloudEvent) -> tuple[dict[str, str], bytes]:
    """Headers and body in structured content mode (JSON format)."""
    document: dict[str, object] = dict(event.attributes)
    if event.data is not None:
        document |= _data_member(event.data, event.attributes.get("datacontenttype", "application/json"))
    headers = {"content-type": f"{STRUCTURED}+json; charset=utf-8"}
    return headers, json.dumps(document, ensure_ascii=False).encode()


def _media(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").strip().lower()


def _read_binary(headers: Mapping[str, str], body: bytes) -> CloudEvent:
    if "ce-specversion" not in headers:
        raise InvalidEventError("not a CloudEvent: attribute specversion is missing")
    if "ce-datacontenttype" in headers:
        raise InvalidEventError("header ce-datacontenttype is not allowed: use Content-Type")
    attributes = {name[3:]: _decode(name, value) for name, value in headers.items() if name.startswith("ce-")}
    if "content-type" in headers:
        attributes["datacontenttype"] = headers["content-type"]
    return CloudEvent(attributes, body or None)


def _decode(name: str, value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidEventError(f"header {name} is not valid UTF-8 once percent-decoded") from error


def _read_structured(body: bytes) -> CloudEvent:
    try:
        document = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidEventError(f"the body is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidEventError("the body is not a JSON object")
    members = {name: value for name, value in document.items() if value is not None}
    data = _structured_data(members)
    attributes = {name: _as_text(name, value) for name, value in members.items() if name not in ("data", "data_base64")}
    if data is not None:
        attributes.setdefault("datacontenttype", "application/json")
    return CloudEvent(attributes, data)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _as_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return value
    raise InvalidEventError(f"attribute {name} must be text, a whole number or a truth value")


def _structured_data(members: Mapping[str, object]) -> bytes | None:
    if "data" in members and "data_base64" in members:
        raise InvalidEventError("data and data_base64 exclude each other")
    if "data_base64" in members:
        return _from_base64(members["data_base64"])
    if "data" not in members:
        return None
    content_type, data = members.get("datacontenttype", "application/json"), members["data"]
    if isinstance(data, str) and not _JSON_TYPE.fullmatch(str(content_type)):
        return _encode("data", data)
    return _encode("data", json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def _from_base64(value: object) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidEventError("data_base64 is not base64") from error


def _encode(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidEventError(f"{name} is not valid Unicode") from error


def _data_member(data: bytes, content_type: str) -> dict[str, object]:
    try:
        if _JSON_TYPE.fullmatch(content_type):
            return {"data": json.loads(data)}
        if content_type.startswith("text/"):
            return {"data": data.decode()}
    except ValueError:
        pass  # said to be JSON or text and is not: base64 carries it unharmed
    return {"data_base64": base64.b64encode(data).decode()}


def _check(attributes: Mapping[str, str]) -> None:
    for name in _REQUIRED:
        if not attributes.get(name):
            raise InvalidEventError(f"attribute {name} is missing or empty")
    if attributes["specversion"] != "1.0":
        raise InvalidEventError(f"specversion {attributes['specversion']!r} is not supported: only 1.0")
    for name, value in attributes.items():
        if not _NAME.fullmatch(name) or name == "data":
            raise InvalidEventError(f"attribute name {name!r} must be lower-case letters and digits, and not data")
        if _FORBIDDEN.search(value):
            raise InvalidEventError(f"attribute {name} holds control characters or is not valid Unicode")
    if "time" in attributes and not _TIME.fullmatch(attributes["time"]):
        raise InvalidEventError("attribute time is not RFC 3339")

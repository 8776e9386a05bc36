"""Upload notifications: what S3, its envelopes and its look-alikes say, as one list of plain facts.

Pure: a JSON value in, facts out; no store is asked and no address in a notification is ever called.
Knows the error tree and nothing else.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from shared import records
from shared.errors import ForbiddenError, JsonValue, RequestError

Fields: TypeAlias = Mapping[str, JsonValue]
MAX_DEPTH = 24
"""Steps into a body. An envelope takes three or four, and EventBridge in SNS in SQS in a CloudEvent are four."""


@dataclass(frozen=True)
class ObjectCreated:
    """An object was written. Facts of the moment of the notification: the object may be another one by now."""

    bucket: str
    key: str
    """As the object is really named: decoded exactly as its envelope encodes it."""
    size: int | None = None
    """Bytes."""
    etag: str = ""
    version: str = ""
    sequencer: str = ""
    time: float | None = None
    """Seconds since the epoch."""


@dataclass(frozen=True)
class Ignored:
    """A notification that can never become a job."""

    reason: str
    """`test_event`, `folder_marker`, `deleted`, `malformed` or `unknown`."""
    detail: str = ""


Notification: TypeAlias = ObjectCreated | Ignored


def parse(body: JsonValue) -> list[Notification]:
    """Every record of a notification, in the order sent.

    Reads S3 records as they are or in SNS, SQS and EventBridge envelopes, MinIO's shape, and CloudEvents around any
    of them, nested. Raises ForbiddenError for an SNS handshake, whose address is never called, and RequestError for
    a body that is no notification at all (not JSON, not an object).
    """
    return list(_walk(body, 0))


def _walk(body: JsonValue, depth: int) -> Iterator[Notification]:
    if depth > MAX_DEPTH:
        yield Ignored("unknown", "envelopes nested too deep")
    elif isinstance(body, str):
        yield from _walk(_decode(body), depth + 1)
    elif isinstance(body, list):
        for item in body:
            yield from _item(item, depth)
    elif isinstance(body, dict):
        yield from _object(body, depth + 1)
    else:
        raise RequestError("The body is not a notification.")


def _item(item: JsonValue, depth: int) -> list[Notification]:
    """One of several: what is wrong with it must not cost the others their turn."""
    try:
        return list(_walk(item, depth + 1))
    except RequestError as error:
        return [Ignored("malformed", error.detail)]


def _object(body: Fields, depth: int) -> Iterator[Notification]:
    if body.get("Type") in ("SubscriptionConfirmation", "UnsubscribeConfirmation"):
        raise ForbiddenError("Confirm the subscription yourself; addresses in notifications are never called.")
    inner = [name for name in ("Records", "Messages", "Message", "Body", "body", "Sns") if _holds(body.get(name))]
    if _event_name(body) == "TestEvent":
        yield Ignored("test_event")
    elif isinstance(body.get("s3"), dict):
        yield _record(body)
    elif body.get("source") == "aws.s3" and isinstance(body.get("detail"), dict):
        yield _eventbridge(body)
    elif inner:
        yield from _walk(body[inner[0]], depth)
    elif "specversion" in body and "data" in body:
        yield from _walk(body["data"], depth)
    elif "specversion" in body and isinstance(body.get("data_base64"), str):
        yield from _walk(_text(str(body["data_base64"])), depth)
    else:
        yield Ignored("unknown")


def _holds(value: JsonValue) -> bool:
    return isinstance(value, str | list | dict)


def _record(record: Fields) -> Notification:
    """One S3 record. Its key is form-urlencoded once: `+` is a space, `%2B` a plus."""
    facts = _fields(record, "s3")
    stored = _fields(facts, "object")
    key = stored.get("key")
    try:
        decoded = unquote_to_bytes(key.replace("+", " ")).decode() if isinstance(key, str) else ""
    except UnicodeError:
        return Ignored("malformed", "the key is not UTF-8")
    version = _str(stored.get("versionId"))
    found = _created(facts, stored, decoded, version, _time(record.get("eventTime")))
    return _judged(_event_name(record), found)


def _eventbridge(event: Fields) -> Notification:
    """One S3 event of EventBridge, which does not encode keys."""
    facts = _fields(event, "detail")
    stored = _fields(facts, "object")
    version = _str(stored.get("version-id"))
    found = _created(facts, stored, _str(stored.get("key")), version, _time(event.get("time")))
    kind = _str(event.get("detail-type")).removeprefix("Object ")
    return _judged({"Created": "ObjectCreated:", "Deleted": "ObjectRemoved:"}.get(kind, kind), found)


def _created(facts: Fields, stored: Fields, key: str, version: str, time: float | None) -> ObjectCreated:
    size = stored.get("size")
    return ObjectCreated(
        bucket=_str(_fields(facts, "bucket").get("name")),
        key=key,
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        etag=_str(stored.get("eTag", stored.get("etag"))).strip('"'),
        version=version,
        sequencer=_str(stored.get("sequencer")),
        time=time,
    )


def _judged(event: str, found: ObjectCreated) -> Notification:
    if event.startswith(("ObjectRemoved:", "LifecycleExpiration:")):
        return Ignored("deleted", found.key)
    if not event.startswith("ObjectCreated:"):
        return Ignored("unknown", event)
    if not found.key or not found.bucket:
        return Ignored("malformed", "no key or no bucket")
    return Ignored("folder_marker", found.key) if found.key.endswith("/") else found


def _event_name(record: Fields) -> str:
    return _str(record.get("eventName", record.get("Event"))).removeprefix("s3:")


def _decode(text: str) -> JsonValue:
    try:
        return records.loads(text)
    except ValueError:
        raise RequestError("The notification is not valid JSON.") from None


def _text(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode()
    except ValueError:
        raise RequestError("The notification is not valid base64.") from None


def _time(value: JsonValue) -> float | None:
    """Seconds since the epoch of an RFC 3339 time; what is no time counts as not said."""
    try:
        parsed = datetime.fromisoformat(_str(value))
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _fields(table: Fields, name: str) -> Fields:
    value = table.get(name)
    return value if isinstance(value, dict) else {}


def _str(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""

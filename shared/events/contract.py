"""How one event follows another: names, identity and the extensions that travel through the whole chain.

The tenant is set once, by intake after authentication (`first`), and only copied from then on (`reply`); event data
never decides it. Knows the Event, the codec and the payloads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from shared.errors import InvalidCloudEventError
from shared.events.choices import Options
from shared.events.codec import from_payload
from shared.events.content import JSON
from shared.events.event import Event, reply_id, source_of, type_of
from shared.events.payloads import Job, Payload, Segment, Video

IMAGE, VIDEO, SEGMENT = "image", "video", "segment"
"""Values of the `media` extension: what an event is about."""

_COPIED = ("tenantid", "media", "priority", "enhance", "wake", "traceparent")


def first(stage: str, tenant: str, payload: Payload, cause: str, *, wake: str = "none", traceparent: str = "") -> Event:
    """An event that starts a job's chain: no event of ours came before it.

    `cause` is what the id is made from: the same stage, tenant, cause and outcome always give the same id, so the
    broker drops what is published twice. `wake`: the tenant's policy of that name, which the wake-up Triggers read on
    events about a job that goes on. `traceparent` is the W3C text of the request's span, or empty.
    """
    media = payload.medium or IMAGE
    extensions = {"tenantid": tenant, "media": media, "priority": "interactive", "traceparent": traceparent}
    if isinstance(payload, Segment):
        extensions["priority"] = payload.request.priority
    if isinstance(payload, Job):
        enhance = _enhance(payload.options) if payload.media == IMAGE else ""  # a video's faces are restored in swap
        extensions |= {"priority": payload.priority, "enhance": enhance, "media": payload.media}
        extensions["wake"] = "" if wake == "none" else wake
    return _event(stage, _named(stage, tenant, cause), payload, extensions)


def reply(stage: str, cause: Event, payload: Payload, *, traceparent: str = "") -> Event:
    """What `stage` answers to `cause`, an event with a tenant.

    Several segments that one cause leads to are told apart by their places in the video; a joined video is one event,
    whichever segment was its last. `traceparent` is the span in which the stage worked (default: the cause's own).
    Raises InvalidCloudEventError when the cause carries no tenant.
    """
    if not cause.tenant:
        raise InvalidCloudEventError(
            "tenantid: an event without a tenant has no reply.", context={"attribute": "tenantid"}
        )
    extensions = {name: str(cause.extensions[name]) for name in _COPIED if name in cause.extensions}
    if traceparent:
        extensions["traceparent"] = traceparent
    if payload.medium:
        extensions["media"] = payload.medium
    origin = _named(stage, cause.tenant, payload.job) if isinstance(payload, Video) else cause
    return _event(stage, origin, payload, extensions)


def again(cause: Event, reason: str) -> Event:
    """`cause` once more, as another event: `reason` decides its id, so the same reason gives the same one.

    Without a proof, which was that of the old id.
    """
    extensions = {name: value for name, value in cause.extensions.items() if name in (*_COPIED, "partitionkey")}
    return replace(cause, id=reply_id(reason, cause, "again"), time=_now(), extensions=extensions)


def _now() -> str:
    """RFC 3339, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _enhance(options: Options) -> str:
    """What the Triggers of the enhance stage, and of the one after it, look for; absent when it is not asked for."""
    return "true" if options.enhancer or options.upscaler else ""


def _named(stage: str, tenant: str, cause: str) -> Event:
    """What an id is made from where no event of ours is the cause."""
    return Event(id=cause, source=f"{source_of(stage)}/{tenant}", type="")


def _event(stage: str, cause: Event, payload: Payload, extensions: Mapping[str, str]) -> Event:
    present = {name: value for name, value in extensions.items() if value}
    part = payload.index if isinstance(payload, Segment) else 0
    return Event(
        id=reply_id(stage, cause, payload.outcome, part),
        source=source_of(stage),
        type=type_of(stage, payload.outcome),
        subject=payload.job,
        time=_now(),
        datacontenttype=JSON,
        extensions={**present, "partitionkey": payload.job},
        data=from_payload(payload),
    )

"""Dead letters: events that the broker gave up on, kept as they were, and what they mean for their job.

Knows the event, the payloads, the tenants and the object store.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import urlsplit

from shared import records
from shared.errors import JsonValue, PreconditionFailedError
from shared.events.event import Event
from shared.events.payloads import Failure
from shared.jobs.records import JSON
from shared.rejections import InvalidKeyError, UnknownTenantError
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.tenancy.directory import Directory

DETAIL = "The stage could not finish its work; the event is kept and can be replayed."
_CODE = re.compile(r'"code"\s*:\s*"([a-z][a-z0-9_]{0,63})"')
_STAGE = re.compile(r"[a-z][a-z0-9-]{0,62}")


def keep(store: ObjectStore, event: Event) -> None:
    """Write the original to system/dead-letter/, under a name made from its source and id; the first one stays."""
    key = keys.system("dead-letter", event.digest + ".json")
    try:
        store.create(key, records.dumps(_document(event)), content_type=JSON)
    except PreconditionFailedError:
        return


def failure(event: Event, tenants: Directory) -> Failure | None:
    """The failed event of the job that `event` belongs to.

    None when there is no such job or tenant, or when the job has ended already and only the news of it could not be
    delivered.
    """
    if event.kind is None or is_end(event) or not _is_job(event, tenants):
        return None
    code = str(event.extensions.get("knativeerrorcode", ""))
    return Failure(
        job=event.job,
        stage=_stage(str(event.extensions.get("knativeerrordest", ""))),
        code=_fault(event) or (f"http_{code}" if code.isdecimal() else "undeliverable"),
        detail=DETAIL,
        dead_letter=event.id,
    )


def is_end(event: Event) -> bool:
    """Whether the event itself tells the end of a job."""
    kind = event.kind
    return kind is not None and (kind.outcome in ("rejected", "failed") or kind == ("publish", "completed"))


def _is_job(event: Event, tenants: Directory) -> bool:
    try:
        return bool(keys.job(tenants.get(event.tenant).name, event.job))
    except (InvalidKeyError, UnknownTenantError):
        return False


def _stage(destination: str) -> str:
    """The stage's folder from the address that could not be reached; empty when it tells none.

    It is the path where one process serves several stages, else the first label of the host.
    """
    address = urlsplit(destination)
    label = address.path.strip("/") or (address.hostname or "").partition(".")[0]
    return label.replace("-", "_") if _STAGE.fullmatch(label) else ""


def _fault(event: Event) -> str:
    """The code of the problem document that the stage answered with.

    The broker hands on at most 1024 characters of it, base64 when they do not print (eventing, delivery spec), so it
    may be cut and is not parsed as a whole.
    """
    data = str(event.extensions.get("knativeerrordata", ""))
    try:
        text = base64.b64decode(data, validate=True).decode()
    except ValueError:
        text = data
    found = _CODE.search(text)
    return found[1] if found else ""


def _document(event: Event) -> JsonValue:
    """The event in CloudEvents' JSON format."""
    attributes: dict[str, JsonValue] = {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "subject": event.subject,
        "time": event.time,
        "datacontenttype": event.datacontenttype,
        "dataschema": event.dataschema,
    }
    document: dict[str, JsonValue] = {name: value for name, value in attributes.items() if value}
    document.update(event.extensions)
    if isinstance(event.data, bytes):
        document["data_base64"] = base64.b64encode(event.data).decode()
    elif event.data is not None:
        document["data"] = event.data
    return document

"""What a caller of the HTTP API sends, read out of flask's request and checked.

Knows flask and the door for requests.
"""

from __future__ import annotations

import re
from typing import BinaryIO, cast

from flask import Request

from shared import records
from shared.errors import InvalidOptionError, JsonValue, RequestError, UnsupportedContentTypeError
from shared.jobs import inbox, requests
from shared.jobs.requests import Asked, Fetch
from shared.serving.web import read_body
from shared.storage.protocol import ObjectStore
from shared.tenancy.tenant import Tenant

MULTIPART, JSON = "multipart/form-data", "application/json"
MAX_DOCUMENT_BYTES = 65_536
"""Largest JSON body; pictures have their own limit."""
_FORM_BYTES = 500_000
"""Also the parser's own buffer, which takes 64 KiB at a time, so not smaller."""
_WAIT = re.compile(r"(?:^|[,\s])wait\s*=\s*\"?([0-9]{1,9})\"?\s*(?:[,;]|$)", re.IGNORECASE)
_PICTURES = ("source", "target", "reference")


def wait_seconds(request: Request, most: float) -> float:
    """N of `Prefer: wait=N` (RFC 7240), at most `most`; 0 without. What cannot be read is no preference."""
    found = _WAIT.search(",".join(request.headers.getlist("Prefer")))
    return min(float(found[1]), most) if found else 0.0


def number(request: Request, name: str, default: int, highest: int) -> int:
    """A query parameter from 1 to `highest`. Raises RequestError."""
    text = request.args.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,6}", text) or not 1 <= int(text) <= highest:
        raise RequestError(f"{name} is a whole number from 1 to {highest}.", context={"field": name})
    return int(text)


def asked(request: Request, store: ObjectStore, owner: Tenant, job_id: str, fetch: Fetch) -> Asked:
    """The job that a POST asks for, pictures examined, nothing stored; the caller closes it.

    Raises RequestError, UnsupportedContentTypeError, InvalidOptionError, RejectedError for what is known at once, and
    what `fetch` raises.
    """
    if request.mimetype == MULTIPART:
        return _from_form(request, owner, job_id)
    if request.mimetype == JSON:
        return requests.from_names(store, owner, job_id, _document(), fetch)
    raise UnsupportedContentTypeError(f"Send {MULTIPART} or {JSON}.")


def _from_form(request: Request, owner: Tenant, job_id: str) -> Asked:
    policy = owner.policy
    most = (inbox.MAX_SOURCES + 1) * policy.max_bytes + max(policy.max_bytes, policy.max_video_bytes)
    most += 2 * MAX_DOCUMENT_BYTES
    request.max_content_length = min(most, request.max_content_length or most)
    request.max_form_parts = inbox.MAX_SOURCES + 8
    request.max_form_memory_size = _FORM_BYTES
    sources, targets = request.files.getlist("source"), request.files.getlist("target")
    names = {name or "" for name in (*request.files, *request.form)}  # werkzeug says None of a part without a name
    if unknown := sorted(names - {*_PICTURES, "options"}):
        raise RequestError("There is no such part.", context={"field": unknown[0][:64]})
    if texts := sorted({*_PICTURES} & {*request.form}):
        raise RequestError("A picture is sent as a file, with a file name.", context={"field": texts[0]})
    if not sources or len(targets) != 1:
        field = "target" if sources else "source"
        raise RequestError("Send one or more files `source` and one file `target`.", context={"field": field})
    references = request.files.getlist("reference")
    if len(references) > 1:
        raise RequestError("Send at most one file `reference`.", context={"field": "reference"})
    *streams, target = [cast(BinaryIO, part.stream) for part in (*sources, *targets)]
    reference = cast(BinaryIO, references[0].stream) if references else None
    return requests.from_files(owner, job_id, streams, target, _options(request), reference=reference)


def _options(request: Request) -> JsonValue:
    """Of the part `options`, a field or a file: clients send JSON either way."""
    files = [part.stream.read(MAX_DOCUMENT_BYTES + 1) for part in request.files.getlist("options")]
    parts: list[str | bytes] = [*request.form.getlist("options"), *files]
    if len(parts) > 1 or any(len(part) > MAX_DOCUMENT_BYTES for part in parts):
        raise RequestError(
            f"Send one part `options` of at most {MAX_DOCUMENT_BYTES} bytes.", context={"field": "options"}
        )
    try:
        return records.loads(parts[0]) if parts else {}
    except ValueError:
        raise InvalidOptionError("Options are a JSON object.", context={"field": "options"}) from None


def _document() -> JsonValue:
    try:
        return records.loads(read_body(MAX_DOCUMENT_BYTES))
    except ValueError:
        raise RequestError("The body is not valid JSON.") from None

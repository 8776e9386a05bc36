"""The HTTP side of the harness: which requests are let in, and how answers and errors become responses.

Knows flask.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Mapping
from logging import getLogger

from flask import Flask, Response, g, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException, InternalServerError

from shared.errors import (
    MethodNotAllowedError,
    NotFoundError,
    PayloadTooLargeError,
    RequestError,
    TransientError,
    UnsupportedContentTypeError,
    WakeswapError,
)
from shared.serving.answers import Reply, problem
from shared.serving.lifecycle import Lifecycle
from shared.serving.slots import Slots

log = getLogger(__name__)

_KINDS: Mapping[int, type[RequestError]] = {
    404: NotFoundError,
    405: MethodNotAllowedError,
    413: PayloadTooLargeError,
    415: UnsupportedContentTypeError,
}
_LACKING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def build(max_body_bytes: int) -> Flask:
    """An app without routes whose every error is a problem document."""
    app = Flask("wakeswap", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    app.register_error_handler(WakeswapError, _known)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(OSError, _machine)
    app.register_error_handler(InternalServerError, _unexpected)
    return app


def respond(reply: Reply) -> Response:
    response = Response(reply.body, status=reply.status)
    response.headers.clear()
    response.headers.extend(reply.headers)
    return response


def read_body(limit: int) -> bytes:
    """The request's body of at most `limit` bytes. Raises PayloadTooLargeError, without reading what is over it.

    One byte more is asked for, since werkzeug cuts a chunked body at its limit without a word.
    """
    request.max_content_length = limit + 1
    body = request.get_data(cache=False)
    if len(body) > limit:
        raise PayloadTooLargeError(f"At most {limit} bytes are taken in here.", context={"limit": limit})
    return body


def add_events(
    app: Flask, receive: Callable[[Mapping[str, str], bytes], Reply], max_bytes: int, path: str = "/"
) -> None:
    """`POST <path>`: where a broker delivers."""

    def deliver() -> Response:
        return respond(receive({name.lower(): value for name, value in request.headers}, read_body(max_bytes)))

    app.add_url_rule(path, f"deliver {path}", deliver, methods=["POST"])


def add_gate(app: Flask, lifecycle: Lifecycle, slots: Slots, free: Collection[str]) -> None:
    """Let work in only while the process is ready and a slot is free. `free`: endpoints that need neither."""

    def admit() -> None:
        if request.endpoint is None or request.endpoint in free:
            return
        lifecycle.check()
        slots.take()
        g.slot = slots

    def leave(_: BaseException | None) -> None:
        held: Slots | None = g.pop("slot", None)
        if held is not None:
            held.give()

    app.before_request(admit)
    app.teardown_request(leave)


def _known(error: WakeswapError) -> Response:
    return respond(problem(error))


def _http(error: HTTPException) -> ResponseReturnValue:
    """flask's and werkzeug's own refusals, with the header that belongs to one of them."""
    if error.code is None or error.code < 400:
        return error.get_response()
    kind = _KINDS.get(error.code, RequestError)
    response = respond(problem(kind(error.description or ""), error.code))
    response.headers.extend((name, value) for name, value in error.get_headers() if name == "Allow")
    return response


def _machine(error: OSError) -> Response:
    """A machine that lacks room answers that it may pass: large parts of a form lie on its disk while they are read."""
    if error.errno not in _LACKING:
        raise error
    log.error("this machine lacks a resource", exc_info=error)
    return respond(problem(TransientError("This machine lacks the room to work.")))


def _unexpected(_: InternalServerError) -> Response:
    """A bug; flask has logged it with its traceback, the caller learns nothing of that."""
    return respond(problem(WakeswapError()))

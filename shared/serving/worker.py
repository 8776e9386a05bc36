"""gunicorn's worker with answers of our form to what its parser refuses: `worker_class` names it. Imported by gunicorn
only, and after the fork. Knows gunicorn, and that the application is flask's.
"""

from __future__ import annotations

import re
import socket
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

from flask import Flask, Response
from flask import request as asked
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import ThreadWorker

from shared.errors import PayloadTooLargeError, RequestError, WakeswapError
from shared.serving.answers import Reply, problem
from shared.serving.web import respond

if TYPE_CHECKING:
    from gunicorn.http.message import Request
    from gunicorn.workers.gthread import TConn

_BROKEN = "wakeswap_broken"
"""Set on a request's body once it turned out not to be one."""
LINGER_SECONDS = 5.0
"""gunicorn's own bound for a kept connection."""
LINGER_BYTES = 16 << 20
"""A request may have more (WAKESWAP_MAX_BODY_BYTES); few of those who are refused do."""
_STATUS = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) ")


class Worker(ThreadWorker):
    """gunicorn decides what is wrong with a request and which status that has; only the answer's body is ours.

    What it would say repeats the sender's bytes, and is HTML. The connection is closed after it either way.
    """

    def load_wsgi(self) -> None:
        """A chunked body is parsed while the application reads it: what is wrong with it comes out there."""
        super().load_wsgi()
        served: object = self.wsgi
        if isinstance(served, Flask):
            for kind in (ParseException, NoMoreData):
                served.register_error_handler(kind, _broken_body)

    def handle_request(self, req: Request, conn: TConn) -> bool:
        """Whether the connection may be kept. After a broken body nobody knows where the next request would begin."""
        kept = super().handle_request(req, conn)
        return not getattr(req.body, _BROKEN, False) and _taken_whole(conn) and kept

    def handle_error(
        self, req: Request | None, client: socket.socket, addr: str | int | tuple[str, int], exc: BaseException
    ) -> None:
        super().handle_error(req, _Translator(client), addr, exc)  # type: ignore[arg-type]


def _taken_whole(conn: TConn) -> bool:
    """Read what a refused caller still sends. To close before is to reset: the answer may go with it, and a proxy on
    the way then makes a 502 of a 401 (RFC 9112, 9.6). gunicorn alone reads 64 KiB.
    """
    parser = conn.parser
    with suppress(ParseException, NoMoreData, OSError):
        if isinstance(parser, RequestParser):
            ends = time.monotonic() + LINGER_SECONDS
            return bool(parser.finish_body(ends, LINGER_BYTES))  # type: ignore[func-returns-value]
    return False


def _broken_body(_: Exception) -> Response:
    setattr(asked.environ["wsgi.input"], _BROKEN, True)
    return respond(_reply(HTTPStatus.BAD_REQUEST))


class _Translator:
    """As much of a socket as gunicorn needs to send one refusal."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client

    def sendall(self, data: bytes) -> None:
        found = _STATUS.match(data)
        self._client.sendall(_bytes(_reply(int(found[1]))) if found else data)

    def gettimeout(self) -> float | None:
        return self._client.gettimeout()

    def setblocking(self, flag: bool) -> None:
        self._client.setblocking(flag)


def _reply(status: int) -> Reply:
    if status >= 500 and status != HTTPStatus.NOT_IMPLEMENTED:
        return problem(WakeswapError())
    if status in (HTTPStatus.REQUEST_URI_TOO_LONG, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE):
        return problem(PayloadTooLargeError("The request line or a header is too long."), status)
    return problem(RequestError("This is not a request that HTTP/1.1 allows, or more of HTTP than is served."), status)


def _bytes(reply: Reply) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    lines += [f"Content-Length: {len(reply.body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + reply.body

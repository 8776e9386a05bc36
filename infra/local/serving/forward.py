"""One request through to one pod and its answer back, as a stream in both directions.

Host and end-to-end headers stay as they are; hop-by-hop headers end here (RFC 9110, 7.6.1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from infra.local.eventing.sender import UNREACHED

_HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"}
) | {"transfer-encoding", "upgrade", "expect", UNREACHED}
_ADDED_BY_CLIENT = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
CHUNK = 64 * 1024


class UnreachableError(Exception):
    """No connection: nothing of the request was sent, so another pod may have it."""


class BrokenError(Exception):
    """The pod went away with the request in hand, before its answer began."""


class SlowError(Exception):
    """The answer did not begin in time."""


class Deadlines:
    """Loop times at which the first byte and the last byte of the answer are due."""

    def __init__(self, response_start: float, whole: float) -> None:
        now = asyncio.get_running_loop().time()
        self.first = now + min(response_start, whole)
        self.last = now + whole


async def forward(
    request: web.BaseRequest, port: int, client: aiohttp.ClientSession, deadlines: Deadlines
) -> web.StreamResponse:
    """The pod's answer, already sent to the caller.

    Raises UnreachableError, BrokenError or SlowError as long as nothing was sent back; what fails later cuts the
    caller's connection, which is the only way to say so in the middle of a body.
    """
    answer = await _ask(request, port, client, deadlines)
    try:
        async with asyncio.timeout_at(deadlines.last):
            return await _send_back(request, answer)
    except (TimeoutError, aiohttp.ClientError, ConnectionResetError):
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)
    finally:
        answer.close()


async def _ask(
    request: web.BaseRequest, port: int, client: aiohttp.ClientSession, deadlines: Deadlines
) -> aiohttp.ClientResponse:
    body = request.content if request.body_exists else None
    address = f"http://127.0.0.1:{port}{_target(request)}"
    try:
        async with asyncio.timeout_at(deadlines.first):
            return await client.request(
                request.method,
                URL(address, encoded=True),
                headers=_end_to_end(request.headers.items(), request.headers.getall("Connection", [])),
                data=body,
                skip_auto_headers=_ADDED_BY_CLIENT,
                allow_redirects=False,
                middlewares=(_once,),
            )
    except TimeoutError as error:
        raise SlowError from error


def _target(request: web.BaseRequest) -> str:
    """What a request asks for, as path and query; the form for proxies (RFC 9112, 3.2.2) names the same.

    Raises HTTPBadRequest for the two forms that name nothing of ours: `*`, and the authority of CONNECT.
    """
    raw = request.raw_path
    target = raw if raw.startswith("/") else str(request.rel_url) if "://" in raw else ""
    if not target.startswith("/"):
        raise web.HTTPBadRequest(text="the target of the request names no path")
    return target


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp sends an idempotent request again by itself when the connection breaks, but not past these errors."""
    try:
        return await send(request)
    except aiohttp.ClientConnectorError as error:
        raise UnreachableError from error
    except (aiohttp.ClientError, ConnectionResetError) as error:
        raise BrokenError(str(error)) from error


async def _send_back(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    headers = _end_to_end(answer.headers.items(), answer.headers.getall("Connection", []))
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    await response.prepare(request)
    if request.method != "HEAD":
        async for chunk in answer.content.iter_chunked(CHUNK):
            await response.write(chunk)
    await response.write_eof()
    return response


def _end_to_end(headers: Iterable[tuple[str, str]], connection: Iterable[str]) -> CIMultiDict[str]:
    named = {name.strip().lower() for value in connection for name in value.split(",")}
    dropped = _HOP_BY_HOP | named
    return CIMultiDict((name, value) for name, value in headers if name.lower() not in dropped)

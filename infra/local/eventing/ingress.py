"""The broker's front door: POST /{namespace}/{broker}, 202 once the event is on disk.

Knows HTTP and the CloudEvents binding; what happens to an event afterwards is not its business.
"""

import asyncio
import logging
from collections.abc import Callable

from aiohttp import web

from infra.local.eventing.cloudevent import InvalidEventError, read_event
from infra.local.eventing.store import Store
from infra.local.eventing.topology import Topology
from infra.local.eventing.writer import StoreError

BODY_LIMIT = 1 << 20
"""Bytes of one request: what a Kafka broker takes by default (max.message.bytes)."""
BODY_SECONDS = 10.0
"""Time for the whole body, as Knative's receiver allows."""

log = logging.getLogger(__name__)


class Ingress:
    """Takes events from producers; `wake` is called after each one that is new."""

    def __init__(self, store: Store, topology: Topology, wake: Callable[[], None], clock: Callable[[], float]) -> None:
        self._clock = clock
        self._store = store
        self._topology = topology
        self._wake = wake

    def routes(self) -> list[web.RouteDef]:
        """Routes for an aiohttp application; other methods than these get 405 from it."""
        path = "/{namespace}/{broker}"
        return [web.post(path, self._post), web.options(path, self._options)]

    async def _post(self, request: web.Request) -> web.Response:
        broker = f"{request.match_info['namespace']}/{request.match_info['broker']}"
        if broker not in self._topology.brokers:
            return _problem(404, f"there is no Broker {broker}")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await read_body(request)
            event = read_event(request.headers.items(), body)
        except TimeoutError:
            return _problem(408, f"the body did not arrive within {BODY_SECONDS:g} s")
        except InvalidEventError as error:
            return _problem(error.status, str(error))
        publication = self._topology.publication(broker, event)
        if publication is None:
            log.error("%s: event %s has no hops left, dropped", broker, event.id)
            return web.Response(status=202)
        try:
            if await self._store.publish(publication, self._clock()):
                self._wake()
        except StoreError as error:
            log.warning("cannot store event %s: %s", event.id, error)
            return _problem(503, f"the event cannot be stored now: {error}")
        return web.Response(status=202)

    async def _options(self, request: web.Request) -> web.Response:
        """The handshake of the CloudEvents web hook specification."""
        origin = request.headers.get("WebHook-Request-Origin", "*")
        return web.Response(headers={"Allow": "POST, OPTIONS", "WebHook-Allowed-Origin": origin})


async def read_body(request: web.Request) -> bytes:
    """Raises InvalidEventError for one over the limit."""
    body = bytearray()
    async for chunk in request.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > BODY_LIMIT:
            raise InvalidEventError(f"the event is larger than {BODY_LIMIT} bytes", 413)
    return bytes(body)


def _problem(status: int, detail: str) -> web.Response:
    return web.json_response(
        {"status": status, "detail": detail}, status=status, content_type="application/problem+json"
    )

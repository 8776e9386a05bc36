"""The platform's own pages: status, events, replay. Loopback, and only for who can read the state folder."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict

from aiohttp import web

from infra.local.eventing.runtime import BrokerRuntime
from infra.local.serving.activator import Activator
from infra.local.sinks.runner import JobSinks

Handler = Callable[[web.Request], Awaitable[web.Response]]


class Admin:
    """JSON pages for the command line; each needs the token of platform.json."""

    def __init__(self, broker: BrokerRuntime, activators: Mapping[str, Activator], sinks: JobSinks, token: str) -> None:
        self._broker = broker
        self._activators = activators
        self._sinks = sinks
        self._token = token

    def routes(self) -> list[web.RouteDef]:
        """For the platform's aiohttp application; one path segment, so no Broker's address is taken."""
        return [
            web.get("/status", self._guarded(self._status)),
            web.get("/events", self._guarded(self._events)),
            web.post("/replay", self._guarded(self._replay)),
        ]

    def _guarded(self, handler: Handler) -> Handler:
        """A web page in a browser can reach loopback too, but cannot know the token."""

        async def checked(request: web.Request) -> web.Response:
            given = request.headers.get("Authorization", "").encode()
            if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
                raise web.HTTPUnauthorized
            return await handler(request)

        return checked

    async def _status(self, _: web.Request) -> web.Response:
        queues = await self._broker.queues()
        return web.json_response(
            {
                "services": {name: activator.status() for name, activator in self._activators.items()},
                "queues": {name: asdict(queue) for name, queue in queues.items()},
                "jobs": self._sinks.status(),
                "idle": await self._broker.idle() and self._sinks.idle(),
            }
        )

    async def _events(self, request: web.Request) -> web.Response:
        entries = await self._broker.history(request.query.get("job"), int(request.query.get("limit", "200")))
        return web.json_response([asdict(entry) for entry in entries])

    async def _replay(self, request: web.Request) -> web.Response:
        return web.json_response({"replayed": await self._broker.replay(request.query["id"])})

"""What the broker tests share: manifests, events, and subscribers that are real HTTP servers."""

import asyncio
import io
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

from infra.local.eventing.runtime import BrokerRuntime
from infra.local.eventing.spec import Destination, parse_broker, parse_trigger

Document = dict[str, object]


def broker(**delivery: object) -> Document:
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"name": "default", "namespace": "ns"},
        "spec": {"delivery": delivery} if delivery else {},
    }


def trigger(name: str, uri: str, event_type: str = "start", **delivery: object) -> Document:
    spec: Document = {
        "broker": "default",
        "filter": {"attributes": {"type": event_type}},
        "subscriber": {"uri": uri},
    }
    if delivery:
        spec["delivery"] = delivery
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
    }


def headers(event_id: str, event_type: str = "start", **extra: str) -> dict[str, str]:
    attributes = {"specversion": "1.0", "id": event_id, "source": "/test", "type": event_type, **extra}
    return {f"ce-{name}": value for name, value in attributes.items()}


@dataclass
class Received:
    """One request that a subscriber saw."""

    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def id(self) -> str:
        return self.headers["ce-id"]


Handler = Callable[[Received], Awaitable[web.Response]]


@dataclass
class Subscribers:
    """A server whose paths are subscribers; each keeps what it got."""

    handlers: dict[str, Handler]
    seen: dict[str, list[Received]] = field(default_factory=lambda: defaultdict(list))
    url: str = ""
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> "Subscribers":
        app = web.Application()
        app.router.add_post("/{name}", self._receive)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _receive(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        lowered = {key.lower(): value for key, value in request.headers.items()}
        received = Received(lowered, await request.read(), asyncio.get_running_loop().time())
        self.seen[name].append(received)
        return await self.handlers[name](received)

    def ids(self, name: str) -> Counter[str]:
        return Counter(received.id for received in self.seen[name])


def answer(status: int, body: bytes = b"", **head: str) -> Handler:
    async def handle(_: Received) -> web.Response:
        return web.Response(status=status, body=body, headers={k.replace("_", "-"): v for k, v in head.items()})

    return handle


@dataclass
class Running:
    """A broker in this process behind a real port."""

    runtime: BrokerRuntime
    url: str
    session: aiohttp.ClientSession
    _runner: web.AppRunner

    async def post(self, head: dict[str, str], body: bytes | io.BytesIO = b"") -> int:
        async with self.session.post(self.url, headers=head, data=body) as response:
            return response.status

    async def settle(self, seconds: float = 10.0) -> None:
        """Wait until no delivery is open."""
        async with asyncio.timeout(seconds):
            while any(q.waiting or q.in_flight or q.retrying for q in (await self.runtime.queues()).values()):
                await asyncio.sleep(0.005)

    async def stop(self) -> None:
        await self.session.close()
        await self._runner.cleanup()
        await self.runtime.stop(grace=0.2)


async def start(
    database: Path,
    documents: Sequence[Document],
    resolve: Callable[[Destination], str | None] = Destination.url,
    clock: Callable[[], float] = time.time,
) -> Running:
    brokers = [parse_broker(document) for document in documents if document["kind"] == "Broker"]
    triggers = [parse_trigger(document) for document in documents if document["kind"] == "Trigger"]
    runtime = BrokerRuntime(database, brokers, triggers, resolve, clock=clock)
    await runtime.start()
    app = web.Application()
    app.add_routes(runtime.app_routes())
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/ns/default"
    return Running(runtime, url, aiohttp.ClientSession(), runner)

"""The front of one Service: a listening socket that is there while no process is.

Every request passes here, as with target-burst-capacity -1 in Knative: it waits until a pod is ready, is passed on,
and comes back with the answers that Knative's activator and queue-proxy give.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from types import MappingProxyType

from aiohttp import web

from infra.local.eventing.sender import UNREACHED
from infra.local.serving.fleet import Fleet, FleetLimits, QueueFullError
from infra.local.serving.forward import BrokenError, Deadlines, SlowError, UnreachableError, forward
from infra.local.serving.model import ServiceSpec
from infra.local.serving.pods import PodRuntime, WakeError

BACKLOG = 1024
QUEUED = MappingProxyType({UNREACHED: "queue"})
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class PortError(Exception):
    """The wanted port cannot be had."""


class Activator:
    """Bound to its port from the first moment; serves between `start` and `close`."""

    def __init__(self, spec: ServiceSpec, runtime: PodRuntime, limits: FleetLimits, port: int = 0) -> None:
        self.spec = spec
        self.fleet = Fleet(spec, runtime, limits)
        self._client = runtime.client
        try:
            self._socket = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
        except OSError as error:
            raise PortError(
                f"Service {spec.name} cannot listen on 127.0.0.1:{port}: {error.strerror}; "
                f"--port {spec.name}=0 takes a free port"
            ) from error
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None, auto_decompress=False))

    async def start(self) -> None:
        """Begin to serve; pods start only for min-scale and initial-scale."""
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, backlog=BACKLOG).start()
        self.fleet.start()

    async def close(self, grace: float) -> None:
        """Refuse new requests, finish those in hand within `grace` seconds, end the pods, leave the port."""
        await self.fleet.close(grace)
        await self._runner.cleanup()
        with contextlib.suppress(OSError):
            self._socket.close()

    def status(self) -> dict[str, object]:
        """For the admin page: asleep, waking or awake, what is in hand, and the story of each wake."""
        phases = {pod.phase for pod in self.fleet.pods}
        awake = "awake" if "ready" in phases else "waking" if "waking" in phases else "asleep"
        return {
            "state": awake,
            "url": self.url,
            "pods": len(self.fleet.pods),
            "in_flight": self.fleet.in_flight,
            "waiting": self.fleet.waiting,
            "wakes": [wake.facts() for wake in self.fleet.history],
        }

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._serve(request)
        except QueueFullError as error:
            return _refusal(503, str(error), QUEUED)
        except WakeError as error:
            return _refusal(503, f"{self.spec.name} does not wake: {error}")
        except TimeoutError:
            return _refusal(504, "activator request timeout", QUEUED if self.fleet.serving else {})
        except SlowError:
            return _refusal(504, "request timeout")
        except BrokenError:
            return _refusal(502, f"{self.spec.name} ended without an answer")

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Try pods until one takes the connection: only then has anything of the request been sent."""
        deadline = asyncio.get_running_loop().time() + self.spec.response_start
        while True:
            pod = await self.fleet.acquire(deadline)
            try:
                if _gone(request):
                    return _refusal(499, "the caller left")
                times = Deadlines(self.spec.response_start, self.spec.timeout)
                return await forward(request, pod.port, self._client, times)
            except UnreachableError:
                self.fleet.discard(pod)
            finally:
                self.fleet.release(pod)


def _gone(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _refusal(status: int, text: str, headers: Mapping[str, str] = NO_HEADERS) -> web.Response:
    return web.Response(status=status, text=f"{text}\n", headers=headers)

"""One pod: init containers one after another, then the container, until it is ready; later its end.

Knows processes and probes. Who needs a pod and when it must go is the fleet's business.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import aiohttp

from infra.local.serving import probes
from infra.local.serving.containers import RESERVED_VARIABLES
from infra.local.serving.environment import (
    Configs,
    MissingReferenceError,
    container_variables,
    expand,
    fill_volumes,
    mount_folders,
    rewrite,
)
from infra.local.serving.ledger import TOKEN_VARIABLE, Ledger
from infra.local.serving.model import Container, ServiceSpec
from infra.local.serving.process import Process, SpawnError, first_of, spawn

BACKLOG = 1024
_NOT_INHERITED = RESERVED_VARIABLES | {"K_SINK", "GUNICORN_CMD_ARGS"}


class WakeError(Exception):
    """The pod did not become ready; the text says why."""


@dataclass(slots=True)
class Wake:
    """The story of one pod, in epoch seconds; None is not yet. `busy` is the time with requests in flight."""

    created: float
    reason: str = "request"
    init_done: float | None = None
    ready: float | None = None
    stopped: float | None = None
    requests: int = 0
    busy: float = 0.0
    end: str = ""

    def facts(self) -> dict[str, str | float | None]:
        """As a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PodRuntime:
    """What every pod of one platform shares. `sink_of` gives K_SINK of a Service by name, or None."""

    configs: Configs
    ledger: Ledger
    logs: Path
    volumes: Path
    client: aiohttp.ClientSession
    sink_of: Callable[[str], str | None] = lambda _: None
    overrides: Mapping[str, str] = field(default_factory=dict)
    grace_limit: float = 10.0


class Pod:
    """Created asleep; `start` returns when it is ready or raises WakeError with nothing left behind."""

    def __init__(self, spec: ServiceSpec, runtime: PodRuntime, reason: str) -> None:
        self.spec = spec
        self.phase: Literal["waking", "ready", "stopping", "gone"] = "waking"
        self.in_flight = 0
        self.port = 0
        self.wake = Wake(created=time.time(), reason=reason)
        self._runtime = runtime
        self._record = runtime.ledger.name(spec.name)
        self._process: Process | None = None
        self._busy_since = 0.0

    @property
    def exited(self) -> asyncio.Future[int]:
        """The return code of the container, once there is one."""
        if self._process is None:
            raise WakeError("the container has not been started")
        return self._process.exited

    def take(self) -> None:
        """Count one request in."""
        if self.in_flight == 0:
            self._busy_since = time.monotonic()
        self.in_flight += 1
        self.wake.requests += 1

    def give(self) -> None:
        """Count one request out."""
        self.in_flight -= 1
        if self.in_flight == 0:
            self.wake.busy += time.monotonic() - self._busy_since

    async def start(self) -> None:
        deadline = self.spec.progress_deadline
        try:
            async with asyncio.timeout(deadline):
                await self._start()
        except TimeoutError as error:
            await self.stop(f"not ready within {deadline:g} s", grace=0)
            raise WakeError(self.wake.end) from error
        except (WakeError, SpawnError, MissingReferenceError, OSError) as error:
            await self.stop(str(error), grace=0)
            raise WakeError(self.wake.end) from error
        except asyncio.CancelledError:
            await self.stop("cancelled", grace=0)
            raise

    async def _start(self) -> None:
        self._runtime.ledger.open(self._record)
        fill_volumes(self.spec.volumes, self._runtime.configs, self._folder)
        for container in self.spec.init:
            code = await asyncio.shield(self._launch(container, {}, ()).exited)
            if code != 0:
                raise WakeError(f"init container {container.name} ended with {_ending(code)}")
        self.wake.init_done = time.time()
        await self._wait_ready(self._launch_server())
        self.phase = "ready"
        self.wake.ready = time.time()

    def _launch_server(self) -> Process:
        """The listening socket is made here, so that connections queue from the first moment and none is refused."""
        container = self.spec.container
        with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
            self.port = listener.getsockname()[1]
            names = {"K_SERVICE": self.spec.name, "K_REVISION": self.spec.revision, "K_CONFIGURATION": self.spec.name}
            fixed = {**names, "PORT": str(self.port)}
            if not _is_gunicorn(container):
                listener.close()
                return self._launch(container, fixed, ())
            fixed["GUNICORN_CMD_ARGS"] = f"--bind fd://{listener.fileno()} --no-control-socket"
            return self._launch(container, fixed, (listener.fileno(),))

    def _launch(self, container: Container, fixed: Mapping[str, str], fds: tuple[int, ...]) -> Process:
        sink = self._runtime.sink_of(self.spec.name)
        fixed = fixed if sink is None else {**fixed, "K_SINK": sink}
        folders = mount_folders(container, self._folder)
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        variables = container_variables(container, self._runtime.configs, fixed, self._runtime.overrides)
        env = {**_base_environment(), **{name: rewrite(value, folders) for name, value in variables.items()}}
        env |= {**self._runtime.overrides, TOKEN_VARIABLE: self._record.token}
        command = [rewrite(expand(part, variables), folders) for part in (*container.command, *container.args)]
        cwd = container.working_dir and rewrite(container.working_dir, folders)
        self._process = process = spawn(command, env, cwd, self._runtime.logs / f"{self.spec.name}.log", fds)
        self._record = self._runtime.ledger.add(self._record, process.pid)
        return process

    async def _wait_ready(self, process: Process) -> None:
        ready = asyncio.ensure_future(self._probe())
        try:
            await first_of(ready, process.exited)
            if process.exited.done():
                raise WakeError(f"container {self.spec.container.name} ended with {_ending(process.exited.result())}")
            await ready
        finally:
            ready.cancel()

    async def _probe(self) -> None:
        container, client = self.spec.container, self._runtime.client
        if container.startup and not await probes.wait_started(container.startup, self.port, client):
            raise WakeError("startup probe failed")
        await probes.wait_passed(container.readiness, self.port, client)

    async def unhealthy(self) -> None:
        """Return when the liveness probe has failed; never without one."""
        if self.spec.container.liveness is None:
            await asyncio.Event().wait()
        else:
            await probes.wait_failed(self.spec.container.liveness, self.port, self._runtime.client)

    async def stop(self, reason: str, grace: float | None = None) -> None:
        """SIGTERM, the grace of the Service (timeoutSeconds, capped by the platform), SIGKILL; then tidy up."""
        self.phase = "stopping"
        self.wake.end = self.wake.end or reason
        if self._process is not None:
            limit = min(self.spec.timeout, self._runtime.grace_limit)
            await self._process.stop(limit if grace is None else grace)
        self._finish()

    def ended(self) -> None:
        """The container ended by itself."""
        self.wake.end = self.wake.end or f"ended with {_ending(self.exited.result())}"
        self._finish()

    def _finish(self) -> None:
        self.phase = "gone"
        self.wake.stopped = self.wake.stopped or time.time()
        self._runtime.ledger.close(self._record)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> Path:
        return self._runtime.volumes / self._record.token


def _is_gunicorn(container: Container) -> bool:
    return Path(container.command[0]).name == "gunicorn" or container.command[1:3] == ("-m", "gunicorn")


def _base_environment() -> dict[str, str]:
    """This process's own without what a platform sets itself, and with the folder of its interpreter first on PATH,
    so that `python` and `gunicorn` are ours."""
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    path = os.environ.get("PATH", os.defpath)
    return {**inherited, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}"}


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"

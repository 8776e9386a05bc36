"""The platform as one object: manifests in, a broker, sleeping Services and running sources out.

Wires the parts and knows the order of starting and stopping; how each part works is its own business.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import secrets
import shutil
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path

import aiohttp
from aiohttp import web

from infra.local.addresses import Addresses
from infra.local.admin import Admin
from infra.local.eventing.runtime import BrokerRuntime
from infra.local.eventing.sender import Sender
from infra.local.logkeeper import LogKeeper
from infra.local.manifests import Manifests, load
from infra.local.options import PLATFORM_PORT, Options
from infra.local.serving.activator import Activator, PortError
from infra.local.serving.fleet import FleetLimits
from infra.local.serving.ledger import Ledger
from infra.local.serving.pods import PodRuntime
from infra.local.sinks.runner import JobSinks
from infra.local.sources.bucket import BucketWatcher
from infra.local.sources.emit import Emitter
from infra.local.sources.ping import PingMemory, PingRunner
from infra.local.state import Facts, StateDir

log = logging.getLogger(__name__)

ORPHAN_GRACE = 3.0
MANY_FILES = 8192
RESTART_PAUSE = 1.0
"""Seconds before a source that broke off goes on."""


class Platform:
    """Start it, use it, stop it: once, in one event loop."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.state = StateDir(options.state)
        self.manifests = Manifests()
        self.activators: dict[str, Activator] = {}
        self._token = secrets.token_hex(16)
        self._stack = contextlib.AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> Facts:
        """Everything up and asleep, or an exception (StateError, ManifestError, PortError, StoreError) and nothing."""
        async with contextlib.AsyncExitStack() as undo:
            undo.push_async_callback(self._stack.aclose)
            facts = await self._start()
            undo.pop_all()
        return facts

    async def _start(self) -> Facts:
        self.state.acquire()
        self._stack.callback(self.state.release)
        _allow_many_files()
        self.manifests = load(self.options.overlay, self.state.generated)
        ledger = Ledger(self.state.folder("pods"))
        ended = await asyncio.to_thread(ledger.reap, ORPHAN_GRACE)
        if ended:
            log.warning("ended %d processes that a killed platform left behind", ended)
        shutil.rmtree(self.state.folder("volumes"), ignore_errors=True)
        listener = _listen(self.options.ports.get(PLATFORM_PORT, 0))
        self._stack.callback(listener.close)
        addresses = Addresses(self.manifests.bindings, f"http://127.0.0.1:{listener.getsockname()[1]}")
        client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        self._stack.push_async_callback(client.close)
        runtime = self._pod_runtime(ledger, client, addresses)
        await self._start_services(addresses, runtime)
        sinks = JobSinks(
            self.manifests.job_sinks,
            runtime,
            self.state.folder("jobs"),
            lambda sink: addresses.sink_of_jobs(sink.labels),
            at_once=self.options.max_pods,
        )
        await self._start_broker(addresses, listener, sinks)
        await self._start_sources(addresses)
        return self._announce(addresses)

    def _pod_runtime(self, ledger: Ledger, client: aiohttp.ClientSession, addresses: Addresses) -> PodRuntime:
        configs = self.manifests.configs(self._folder)
        for folder in configs.folders.values():  # there before the first pod: people put files in
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return PodRuntime(
            configs=configs,
            ledger=ledger,
            logs=self.state.logs,
            volumes=self.state.folder("volumes"),
            client=client,
            sink_of=addresses.sink_of,
            overrides=self.options.overrides,
            grace_limit=self.options.grace,
        )

    async def _start_services(self, addresses: Addresses, runtime: PodRuntime) -> None:
        limits = FleetLimits(idle=self.options.idle, max_pods=self.options.max_pods)
        for name, spec in self.manifests.services.items():
            usual = spec.public_port or 0 if self.options.usual_ports else 0
            port = self.options.ports.get(name, usual)
            self.activators[name] = Activator(spec, runtime, limits, port)
            addresses.services[name] = self.activators[name].url
        self._stack.push_async_callback(self._close_services)
        for activator in self.activators.values():
            await activator.start()

    async def _close_services(self) -> None:
        await asyncio.gather(*(activator.close(self.options.grace) for activator in self.activators.values()))

    async def _start_broker(self, addresses: Addresses, listener: socket.socket, sinks: JobSinks) -> None:
        broker = BrokerRuntime(
            self.state.root / "broker.sqlite",
            self.manifests.brokers,
            self.manifests.triggers,
            addresses.resolve,
            per_trigger=self.options.deliveries,
        )
        app = web.Application()
        admin = Admin(broker, self.activators, sinks, self._token)
        app.add_routes([*admin.routes(), *broker.app_routes(), *sinks.routes()])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        self._stack.push_async_callback(runner.cleanup)
        await broker.start()
        self._stack.push_async_callback(broker.stop, self.options.grace)
        sinks.start()
        self._stack.push_async_callback(sinks.stop)
        await web.SockSite(runner, listener).start()

    async def _start_sources(self, addresses: Addresses) -> None:
        sender = Sender()
        self._stack.push_async_callback(sender.close)
        emitter = Emitter(sender, addresses.resolve)
        memory = PingMemory(self.state.root / "pings.json")
        work = {f"PingSource {ping.name}": PingRunner(ping, emitter, memory).run for ping in self.manifests.pings}
        for source in self.manifests.buckets:
            path = self.state.folder("sources") / f"{source.namespace}.{source.name}.sqlite"
            watcher = BucketWatcher(source, self._folder(source.watch), emitter, path)
            self._stack.callback(watcher.close)
            work[f"IntegrationSource {source.name}"] = watcher.run
        work["keeper of the logs"] = LogKeeper(self.state.logs).run
        self._stack.push_async_callback(self._stop_sources)
        self._tasks = {asyncio.create_task(keep_running(run, name), name=name) for name, run in work.items()}

    async def _stop_sources(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _folder(self, folder: str) -> Path:
        """An annotation's folder as a path; `{state}` stands for the state folder."""
        return Path(folder.replace("{state}", str(self.state.root))).absolute()

    def _announce(self, addresses: Addresses) -> Facts:
        facts = Facts(
            platform=addresses.platform,
            token=self._token,
            services=addresses.services,
            watches={source.bucket: str(self._folder(source.watch)) for source in self.manifests.buckets},
            generated=self.manifests.generated,
        )
        self.state.announce(facts)
        return facts

    async def stop(self) -> None:
        """Sources first, then deliveries, then functions, then the addresses: nobody is left to talk to nobody."""
        await self._stack.aclose()


def _allow_many_files() -> None:
    """Two descriptors a request: the 256 that some systems begin with are soon used up."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY_FILES if most == resource.RLIM_INFINITY else min(MANY_FILES, most)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port), backlog=1024)
    except OSError as error:
        raise PortError(f"the platform cannot listen on 127.0.0.1:{port}: {error.strerror}") from error


async def keep_running(
    work: Callable[[], Coroutine[None, None, None]], name: str, pause: float = RESTART_PAUSE
) -> None:
    """Until `work` returns: when it breaks off, for whatever reason, that is told and it is started again."""
    while True:
        task = asyncio.create_task(work())
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            await asyncio.wait([task])
        if task.exception() is None:
            return
        log.error("%s broke off, starting it again", name, exc_info=task.exception())
        await asyncio.sleep(pause)

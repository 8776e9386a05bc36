"""The broker as one object: store, front door and dispatcher of all Brokers of a platform.

Runs inside an event loop that somebody else owns; that somebody also serves `app_routes()` over HTTP and says, by
`resolve`, where destinations live.
"""

import asyncio
import logging
import time
from collections.abc import Iterable
from pathlib import Path

from aiohttp import web

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.dispatcher import Clock, Dispatcher, Resolve
from infra.local.eventing.ingress import Ingress
from infra.local.eventing.records import HistoryEntry, Queue
from infra.local.eventing.spec import Broker, Trigger
from infra.local.eventing.store import Store
from infra.local.eventing.topology import Topology
from infra.local.eventing.writer import StoreError

_PRUNE_EVERY = 3600.0

log = logging.getLogger(__name__)


class BrokerRuntime:
    """Durable broker: what was accepted is delivered at least once to every matching Trigger, across crashes."""

    def __init__(
        self,
        db_path: Path,
        brokers: Iterable[Broker],
        triggers: Iterable[Trigger],
        resolve: Resolve,
        *,
        per_trigger: int = 8,
        total: int = 128,
        retention_hours: float = 24.0,
        dead_retention_hours: float = 24.0 * 14,
        clock: Clock = time.time,
    ) -> None:
        """`resolve` gives the whole URL of a destination (`Destination.url` joins its path), or None while there
        is none: the delivery then waits without counting an attempt. Finished events are forgotten after
        `retention_hours`, those with a given-up delivery after `dead_retention_hours`; until then they also keep
        duplicates out. ManifestError where Triggers and Brokers do not fit.
        """
        self._topology = Topology(brokers, triggers)
        self._store = Store(db_path)
        self._clock = clock
        self._dispatcher = Dispatcher(
            self._store, self._topology, resolve, per_trigger=per_trigger, total=total, clock=clock
        )
        self._ingress = Ingress(self._store, self._topology, self._dispatcher.wake, clock)
        self._retention = retention_hours * 3600.0, dead_retention_hours * 3600.0
        self._pruner: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Open the store (StoreError where another process has it) and go on where the last process ended."""
        resumed, gone = await self._store.open(self._topology.triggers, self._clock())
        if resumed:
            log.info("%d deliveries were in flight when the last process ended: sent again", resumed)
        if gone:
            log.warning("%d deliveries dropped: their Trigger is gone; `replay` once it is back", gone)
        self._dispatcher.start()
        self._pruner = asyncio.create_task(self._prune())

    async def stop(self, grace: float = 2.0) -> None:
        """Stop delivering; attempts that do not end within `grace` seconds are made again on the next start."""
        if self._pruner is not None:
            self._pruner.cancel()
            await asyncio.wait([self._pruner])
        await self._dispatcher.stop(grace)
        await self._store.close()

    def app_routes(self) -> list[web.RouteDef]:
        """The ingress routes for the platform's aiohttp application."""
        return self._ingress.routes()

    async def publish(self, event: CloudEvent, broker: str | None = None) -> bool:
        """Accept an event for the Broker with this key (`namespace/name`), or for the only one.

        Returns once the event is on disk: False where the broker already had it (or its hops are used up).
        ValueError for an unknown Broker, StoreError where it cannot be stored.
        """
        key = broker if broker is not None else self._only_broker()
        if key not in self._topology.brokers:
            raise ValueError(f"there is no Broker {key}")
        publication = self._topology.publication(key, event)
        if publication is None:
            return False
        fresh = await self._store.publish(publication, self._clock())
        if fresh:
            self._dispatcher.wake()
        return fresh

    async def history(self, job: str | None = None, limit: int = 1000) -> list[HistoryEntry]:
        """The newest deliveries, oldest first; with `job`, those of events whose subject it is."""
        return await self._store.history(job, limit)

    async def queues(self) -> dict[str, Queue]:
        """Counts for every Trigger, by its key."""
        counted = await self._store.queues()
        return {key: counted.get(key, Queue()) for key in self._topology.triggers}

    async def replay(self, event_id: str) -> int:
        """Send given-up deliveries of events with this id to their subscriber again; how many there are."""
        count = await self._store.replay(event_id, self._topology.triggers, self._clock())
        self._dispatcher.wake()
        return count

    async def idle(self) -> bool:
        """True where no delivery is in flight or due now (one that waits for its retry is not due)."""
        return not await self._store.busy(self._clock())

    def _only_broker(self) -> str:
        if len(self._topology.brokers) != 1:
            raise ValueError("name the Broker: there is not exactly one")
        return next(iter(self._topology.brokers))

    async def _prune(self) -> None:
        while True:
            now = self._clock()
            try:
                count = await self._store.prune(now - self._retention[0], now - self._retention[1])
                log.debug("%d events forgotten", count)
            except StoreError:
                log.exception("cannot prune, trying again later")
            await asyncio.sleep(_PRUNE_EVERY)

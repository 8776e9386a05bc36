"""Talk to a platform: the one that runs on a state folder, or one started for the occasion."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from infra.local.options import Options
from infra.local.platform import Platform
from infra.local.state import Facts, StateDir, StateError

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Client:
    """The admin pages of one platform."""

    facts: Facts
    http: aiohttp.ClientSession

    async def status(self) -> dict[str, Any]:
        """Services, queues, and whether the broker is idle."""
        return dict(await self._get("/status", {}))

    async def events(self, job: str | None = None, limit: int = 200) -> list[dict[str, Any]]:
        """The newest deliveries, oldest first; with `job`, those of this subject."""
        query = {"limit": str(limit)} | ({"job": job} if job else {})
        return list(await self._get("/events", query))

    async def replay(self, event_id: str) -> int:
        """Deliveries that were given up and are made again."""
        async with self.http.post(
            f"{self.facts.platform}/replay", params={"id": event_id}, headers=self._key
        ) as answer:
            answer.raise_for_status()
            return int((await answer.json())["replayed"])

    async def wait_asleep(self) -> dict[str, Any]:
        """The status once no event is on its way and no process runs."""
        while True:
            status = await self.status()
            if status["idle"] and all(service["pods"] == 0 for service in status["services"].values()):
                return status
            await asyncio.sleep(POLL_SECONDS)

    async def _get(self, page: str, query: Mapping[str, str]) -> Any:
        async with self.http.get(f"{self.facts.platform}{page}", params=query, headers=self._key) as answer:
            answer.raise_for_status()
            return await answer.json()

    @property
    def _key(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.facts.token}"}


@contextlib.asynccontextmanager
async def connect(options: Options, *, start: bool) -> AsyncIterator[Client]:
    """A client of the running platform. Without one: start one for the block if `start`, else raise StateError."""
    async with contextlib.AsyncExitStack() as stack:
        facts = StateDir(options.state).running()
        if facts is None and not start:
            raise StateError(f"no platform is running on {options.state}: start one with `up`")
        if facts is None:
            platform = Platform(replace(options, usual_ports=False))
            facts = await platform.start()
            stack.push_async_callback(platform.stop)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        yield Client(facts, await stack.enter_async_context(aiohttp.ClientSession(timeout=timeout)))

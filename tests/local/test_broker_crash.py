"""kill -9 of the broker at random moments, under load from real HTTP publishers to subscribers of every temper."""

import asyncio
import json
import os
import random
import signal
import socket
import sys
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from infra.local.eventing.records import HistoryEntry
from infra.local.eventing.store import Store
from tests.local.brokers import Document, Received, Subscribers, answer, broker, headers, trigger

pytestmark = pytest.mark.slow

EVENTS = 240
KILLS = 8
PUBLISHERS = 3


class BrokerProcess:
    """The broker in a process of its own, on one port and one file through all its lives."""

    def __init__(self, folder: Path, documents: list[Document]) -> None:
        self.database = folder / "broker.sqlite"
        self._topology = folder / "topology.json"
        self._topology.write_text(json.dumps(documents))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        command = [sys.executable, "-m", "tests.local.broker_process"]
        self._process = await asyncio.create_subprocess_exec(
            *command, str(self.database), str(self.port), str(self._topology)
        )
        async with asyncio.timeout(20):
            while not await self._listens():
                await asyncio.sleep(0.02)

    async def end(self, number: signal.Signals) -> int:
        assert self._process is not None
        os.kill(self._process.pid, number)
        return await self._process.wait()

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True


async def publish(url: str, ids: list[str], acknowledged: list[str]) -> None:
    """Send each event until it is acknowledged, as a careful producer does."""
    async with aiohttp.ClientSession() as session:
        for event_id in ids:
            while event_id not in acknowledged:
                try:
                    async with session.post(url, headers=headers(event_id), data=b"x" * 500) as response:
                        if response.status == 202:
                            acknowledged.append(event_id)
                except aiohttp.ClientError:
                    await asyncio.sleep(0.02)
            await asyncio.sleep(0.01)


async def recorded(database: Path) -> list[HistoryEntry]:
    store = Store(database)
    await store.open([f"ns/{name}" for name in ("good", "flaky", "dead", "slow", "refusing", "collect")], 0)
    entries = await store.history(None, 1_000_000)
    await store.close()
    return entries


def test_kill_9_loses_nothing_and_everything_resumes(tmp_path: Path) -> None:
    dice = random.Random(7)

    async def good(received: Received) -> web.Response:
        return web.Response(headers=headers(f"reply-{received.id}", "replied"), body=b"done")

    async def flaky(_: Received) -> web.Response:
        return web.Response(status=503 if dice.random() < 0.2 else 204)

    async def slow(_: Received) -> web.Response:
        await asyncio.sleep(0.2)
        return web.Response(status=204)

    handlers = {
        "good": good,
        "flaky": flaky,
        "dead": answer(503, b"never"),
        "slow": slow,
        "refusing": answer(422, b"no"),
        "collect": answer(204),
        "sink": answer(202),
    }

    def documents(url: str) -> list[Document]:
        sink = {"uri": f"{url}/sink"}
        patient: Document = {"retry": 12, "backoffPolicy": "linear", "backoffDelay": "PT0.02S", "deadLetterSink": sink}
        return [
            broker(retry=0, deadLetterSink=sink),
            trigger("good", f"{url}/good"),
            trigger("flaky", f"{url}/flaky", "start", **patient),
            trigger("dead", f"{url}/dead", "start", **{**patient, "retry": 2}),
            trigger("slow", f"{url}/slow"),
            trigger("refusing", f"{url}/refusing", "start", **patient),
            trigger("collect", f"{url}/collect", "replied"),
        ]

    async def main() -> tuple[Subscribers, list[HistoryEntry], list[str]]:
        async with Subscribers(handlers) as subscribers:
            process = BrokerProcess(tmp_path, documents(subscribers.url))
            await process.start()
            url = f"http://127.0.0.1:{process.port}/ns/default"
            acknowledged: list[str] = []
            ids = [str(number) for number in range(EVENTS)]
            publishers = [
                asyncio.create_task(publish(url, ids[part::PUBLISHERS], acknowledged)) for part in range(PUBLISHERS)
            ]
            for _ in range(KILLS):
                await asyncio.sleep(dice.uniform(0.05, 0.6))
                assert await process.end(signal.SIGKILL) == -signal.SIGKILL
                await process.start()
            await asyncio.gather(*publishers)
            await quiet(subscribers)
            assert await process.end(signal.SIGTERM) == 0
            return subscribers, await recorded(process.database), acknowledged

    subscribers, entries, acknowledged = asyncio.run(main())
    everything = set(acknowledged)
    assert len(everything) == EVENTS
    for name in ("good", "flaky", "dead", "slow", "refusing"):
        assert set(subscribers.ids(name)) == everything, name
    states = Counter((entry.trigger, entry.state) for entry in entries if entry.trigger)
    # retry 0: had a crash counted as a failure, some of good and slow would be dead
    assert states == {
        ("ns/good", "done"): EVENTS,
        ("ns/flaky", "done"): EVENTS,
        ("ns/slow", "done"): EVENTS,
        ("ns/collect", "done"): EVENTS,
        ("ns/dead", "dead"): EVENTS,
        ("ns/refusing", "dead"): EVENTS,
    }
    assert all(count >= 3 for count in subscribers.ids("dead").values())
    buried = Counter((item.id, item.headers["ce-knativeerrorcode"]) for item in subscribers.seen["sink"])
    assert set(buried) == {(event_id, code) for event_id in everything for code in ("503", "422")}
    # replies: one event each in the broker, however often the cause was delivered
    replies = Counter(entry.id for entry in entries if entry.type == "replied")
    assert replies == {f"reply-{event_id}": 1 for event_id in everything}
    assert set(subscribers.ids("collect")) == set(replies)
    doubled = {name: sum(subscribers.ids(name).values()) - EVENTS for name in ("good", "slow", "collect")}
    # at least once: only what was in flight at a kill may come again (16 for each Trigger at most)
    assert all(0 <= extra <= KILLS * 16 for extra in doubled.values()), doubled
    assert doubled["slow"] > 0, "no kill met a delivery in flight: this test has shown nothing"


async def quiet(subscribers: Subscribers) -> None:
    """Wait until nothing has arrived anywhere for a second."""
    async with asyncio.timeout(60):
        count = -1
        while count != (count := sum(len(items) for items in subscribers.seen.values())):
            await asyncio.sleep(1.0)

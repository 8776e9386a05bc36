"""How many pods start at once, and in which order."""

from __future__ import annotations

import asyncio

import pytest

from infra.local.serving.turns import Turns, processors

FOREVER = 3600.0


class Starts:
    """Starts by name: who is in, and in which order they came."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self.begun: list[str] = []
        self.ready: dict[str, asyncio.Event] = {}

    def want(self, name: str) -> asyncio.Task[None]:
        self.ready[name] = asyncio.Event()
        return asyncio.create_task(self._start(name))

    async def _start(self, name: str) -> None:
        async with self._turns.turn():
            self.begun.append(name)
            await self.ready[name].wait()


async def until(starts: Starts, count: int) -> None:
    async with asyncio.timeout(60):
        while len(starts.begun) < count:
            await asyncio.sleep(0.001)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_starts_go_in_order_and_no_more_at_once_than_said() -> None:
    async def play() -> None:
        starts = Starts(Turns(2, FOREVER))
        tasks = [starts.want(name) for name in "abcd"]
        await settled()
        assert starts.begun == ["a", "b"]
        starts.ready["b"].set()
        await until(starts, 3)
        await settled()
        assert starts.begun == ["a", "b", "c"]
        for event in starts.ready.values():
            event.set()
        await asyncio.gather(*tasks)
        assert starts.begun == ["a", "b", "c", "d"]

    asyncio.run(play())


def test_a_start_that_takes_long_keeps_nobody_waiting_and_gives_no_second_place_when_it_ends() -> None:
    async def play() -> None:
        turns = Turns(1, 0.01)
        starts = Starts(turns)
        slow = starts.want("slow")
        await settled()
        others = [starts.want(name) for name in "ab"]
        await until(starts, 3)
        for event in starts.ready.values():
            event.set()
        await asyncio.gather(slow, *others)
        async with turns.turn():
            assert turns._free.locked()

    asyncio.run(play())


def test_one_that_fails_and_one_that_is_cancelled_give_their_places_back() -> None:
    async def fail(turns: Turns) -> None:
        async with turns.turn():
            raise ValueError

    async def play() -> None:
        turns = Turns(1, FOREVER)
        with pytest.raises(ValueError):  # noqa: PT011 - ours
            await fail(turns)
        starts = Starts(turns)
        working, waiting = starts.want("working"), starts.want("waiting")
        await settled()
        waiting.cancel()
        working.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)
        last = starts.want("last")
        await until(starts, 2)
        assert starts.begun == ["working", "last"]
        starts.ready["last"].set()
        await last

    asyncio.run(play())


def test_there_is_at_least_one_processor() -> None:
    assert processors() >= 1

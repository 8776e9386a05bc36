"""Whose turn it is to start: as many pods at once as there are processors, in the order in which they were wanted.

Pods that all start at once on few processors are all ready late, and take a fifth more of CPU for it; one after another
the first is ready early, and works while the next one starts. Knows time and nothing of pods.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LONGEST = 5.0
"""Seconds after which a start no longer counts: it waits for something else than a processor, a download perhaps."""


def processors() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Turns:
    """`at_once`: starts that may be under way; `longest`: seconds that one of them may keep the others waiting."""

    def __init__(self, at_once: int, longest: float = LONGEST) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._longest = longest

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for it; the caller starts inside."""
        await self._free.acquire()
        given_back = False

        def give_back() -> None:
            nonlocal given_back
            if not given_back:
                given_back = True
                self._free.release()

        late = asyncio.get_running_loop().call_later(self._longest, give_back)
        try:
            yield
        finally:
            late.cancel()
            give_back()

"""How many requests are worked on at once: the Service's containerConcurrency, whoever stands in front.

The server has more threads than slots, so that probes, `/wake` and refusals are answered while all slots work.
"""

from __future__ import annotations

import threading

from shared.errors import OverloadedError


class Slots:
    def __init__(self, size: int) -> None:
        self._free = threading.BoundedSemaphore(size)

    def take(self) -> None:
        """Raises OverloadedError at once when no slot is free: whoever waited here would hold a thread."""
        if not self._free.acquire(blocking=False):
            raise OverloadedError

    def give(self) -> None:
        self._free.release()

"""How long models ran for one event, by where they ran. Light: it knows the standard library only.

The harness opens a measurement around an event's work, and every run of a model adds to the one it is in. Threads that
start with a copy of their maker's context (`serving.background` does that) are in it too; the warm-up before a process
is ready is in none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class DeviceTime:
    """Seconds by provider. Any number of threads may add."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, provider: str, seconds: float) -> None:
        with self._lock:
            self._seconds[provider] = self._seconds.get(provider, 0.0) + seconds

    def seconds(self) -> dict[str, float]:
        """By `cpu`, `cuda` or `tensorrt`, to the microsecond; without those on which nothing ran."""
        with self._lock:
            return {provider: round(seconds, 6) for provider, seconds in self._seconds.items()}


_current: ContextVar[DeviceTime | None] = ContextVar("device_time", default=None)


@contextmanager
def measured() -> Iterator[DeviceTime]:
    """What the models that run in the block took; a measurement inside another keeps its own."""
    total = DeviceTime()
    token = _current.set(total)
    try:
        yield total
    finally:
        _current.reset(token)


@contextmanager
def running(provider: str) -> Iterator[None]:
    """Around device work: time from handing the inputs over to having the outputs, also when it fails.

    On a GPU that is the device's own time and both copies, since a run waits for its outputs; on a CPU it is time on
    the clock, however many cores work at it.
    """
    total = _current.get()
    started = time.perf_counter()
    try:
        yield
    finally:
        if total is not None:
            total.add(provider, time.perf_counter() - started)

"""Which models are in memory, how many bytes they take, and which may go.

A model is in use while anybody but the registry holds its adapter: a job's local variable, another model that works
with it. So nobody has to give anything back; what is let go is looked at through a weak reference, and taken back when
it is still there. Knows no runtime and no files.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from shared.vision.protocols import Adapter

log = logging.getLogger(__name__)


class Meter(Protocol):
    def count(self, name: str, amount: float = 1.0, **labels: str) -> None: ...

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...

    def gauge(self, name: str, value: float, **labels: str) -> None: ...


class Unmetered:
    """For a registry that nobody watches."""

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None: ...

    def observe(self, name: str, seconds: float, **labels: str) -> None: ...

    def gauge(self, name: str, value: float, **labels: str) -> None: ...


def _nothing() -> None: ...


@dataclass
class Slot:
    """The place of one version of a model. Whoever loads, warms or drops it holds the lock."""

    name: str
    """The model's; several versions share it."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    adapter: Adapter | None = None
    warm: bool = False
    pinned: bool = False
    size: int = 0
    """Bytes of its files."""
    used: float = 0.0
    """Monotonic time at which it was last asked for."""
    provider: str = ""
    """Where it runs: `cpu`, `cuda` or `tensorrt`."""
    release: Callable[[], None] = _nothing
    """Lets go of its files; called when it was dropped."""


class Residents:
    """Any number of threads may use it."""

    def __init__(self, budget: int, meter: Meter) -> None:
        """`budget`: bytes, 0 for no limit."""
        self._budget = budget
        self._meter = meter
        self._slots: dict[str, Slot] = {}
        self._lock = threading.Lock()
        self._room = threading.Lock()

    def slot(self, name: str, version: str) -> Slot:
        """`version`: a text that is another one when anything is that the adapter is made from."""
        with self._lock:
            slot = self._slots.setdefault(f"{name} {version}", Slot(name))
        slot.used = time.monotonic()
        return slot

    @contextmanager
    def taking(self, slot: Slot, size: int) -> Iterator[None]:
        """Room for `size` bytes, counted from now on, given back when loading fails.

        Models that nobody uses go first, least recently used ones first. When all are pinned or in use the budget is
        passed, and said to be: a job that needs two models at once is better served than refused.
        """
        with self._room:
            over = self._make_room(slot, size)
            slot.size = size
        if over > 0:
            self._meter.count("models_over_budget", model=slot.name)
            log.warning("the models in use need more memory than is allowed", extra={"model": slot.name, "over": over})
        with ExitStack() as undo:
            undo.callback(setattr, slot, "size", 0)
            yield
            undo.pop_all()

    def settle(self, slot: Slot) -> None:
        """Back into the budget after jobs that needed more at once: what nobody uses goes, but for `slot`'s model."""
        if self._budget and self.size() > self._budget:
            with self._room:
                self._make_room(slot, 0)

    def size(self) -> int:
        """Bytes of all models in memory and on their way."""
        return sum(slot.size for slot in self._all())

    def names(self) -> list[str]:
        """Of the models in memory, once for each version."""
        return sorted(slot.name for slot in self._all() if slot.adapter is not None)

    def tell(self) -> None:
        """Put what is in memory where it is watched."""
        self._meter.gauge("models_resident", len(self.names()))
        self._meter.gauge("models_resident_bytes", self.size())

    def _all(self) -> list[Slot]:
        with self._lock:
            return list(self._slots.values())

    def _make_room(self, slot: Slot, size: int) -> int:
        """Drop others until `size` bytes fit; the bytes that still do not."""
        over = self.size() + size - self._budget if self._budget else 0
        for other in sorted(self._all(), key=lambda known: known.used) if over > 0 else ():
            if over > 0 and other is not slot:
                over -= self._dropped(other)
        return over

    def _dropped(self, slot: Slot) -> int:
        """Bytes that were freed: 0 for a model that is pinned, in use, being loaded or not there."""
        if slot.pinned or not slot.lock.acquire(blocking=False):
            return 0
        try:
            if slot.adapter is None or _in_use(slot):
                return 0
            freed, slot.size, slot.warm = slot.size, 0, False
        finally:
            slot.lock.release()
        self._meter.count("models_dropped", model=slot.name)
        log.info("model dropped", extra={"model": slot.name, "bytes": freed})
        slot.release()
        return freed


def _in_use(slot: Slot) -> bool:
    """Let go of the adapter; take it back when somebody else holds it."""
    watched = weakref.ref(slot.adapter)
    slot.adapter = None
    slot.adapter = watched()
    return slot.adapter is not None

"""From spans to whoever keeps them: a thread that hands them to OpenTelemetry's SDK, in the order in which they ended.

The SDK takes an eighth of a second of CPU to import, which no event should wait for: the thread begins when the first
span has ended, a moment later, so that the first reply goes out before it. Knows the standard library; `sdk` is
imported by the thread.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from logging import getLogger
from queue import Empty, Full, Queue
from typing import Protocol

from shared.telemetry.spans import Span

log = getLogger(__name__)

MOST = 2048
"""Spans that wait for the thread; more are dropped, as the SDK's own queue does."""
PAUSE_SECONDS = 0.1
"""Before the import: by then the reply whose span was the first is out."""
CLOSE_SECONDS = 5.0
"""Longest that a process which ends waits for its last spans."""


class Keeper(Protocol):
    """Where spans go in the end; `sdk` makes one."""

    def keep(self, span: Span) -> None: ...

    def close(self) -> None: ...


class Exporter:
    """Any number of threads may call it; calling costs microseconds."""

    def __init__(self, make: Callable[[], Keeper], *, pause: float = PAUSE_SECONDS) -> None:
        """`make` imports and opens what is needed, in the thread."""
        self._make, self._pause = make, pause
        self._queue: Queue[Span | None] = Queue(MOST)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._dropped = 0

    def __call__(self, span: Span) -> None:
        try:
            self._queue.put_nowait(span)
        except Full:
            self._dropped += 1
        if self._thread is None:
            self._start()

    def close(self) -> None:
        """Hand over what is left, and wait for it a little."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(CLOSE_SECONDS)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
                self._thread.start()
                atexit.register(self.close)

    def _run(self) -> None:
        time.sleep(self._pause)
        keeper = self._make()
        while (span := self._next()) is not None:
            keeper.keep(span)
        keeper.close()
        if self._dropped:
            log.warning("spans dropped: more ended than could be handed on", extra={"dropped": self._dropped})

    def _next(self) -> Span | None:
        while True:
            try:
                return self._queue.get(timeout=60)
            except Empty:  # a wait without an end would keep Ctrl-C from a process that has no other thread
                continue

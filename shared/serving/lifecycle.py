"""A process's life: loading, ready, stopping, and what it refuses meanwhile. All answers come from memory.

Knows time, threads and one signal; the process itself is gunicorn's (see gunicorn.conf.py).
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import suppress
from logging import getLogger
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, TypeVar

from shared.errors import ModelLoadingError, SetupFailedError, StoppingError, TransientError, WakeswapError
from shared.serving import background

T = TypeVar("T")
log = getLogger(__name__)

EXTENSION, BEGIN = "wakeswap.lifecycle", "wakeswap.begin"
"""Where gunicorn's hooks find the process's Lifecycle, and what starts its setup, in the application's `extensions`."""
STARTED = time.time()
"""When this process began: gunicorn's configuration imports this module before the worker is forked."""
SETUP_FAILED = 3
"""Exit code after a failed setup. gunicorn's master reads it as "worker failed to boot" and ends with it too."""
SHOWN_SECONDS = 2.0
"""How long readiness shows why the setup failed before the process ends."""
HAND_BACK_SECONDS = 2.0
"""How long before the end of the grace period unfinished events are handed back."""


def end_worker() -> None:
    """Stop as on SIGTERM, which gunicorn's master takes for a reason to start another worker in this one's place."""
    os.kill(os.getpid(), signal.SIGTERM)


class _Forking:
    """Whether the process that makes the application is forked afterwards: no thread and no GPU would survive that."""

    ahead = False


def fork_ahead() -> None:
    """Called where processes are forked: what starts a setup there is the worker, by BEGIN."""
    _Forking.ahead = True


def forks() -> bool:
    return _Forking.ahead


class Lifecycle:
    """`grace`: seconds from SIGTERM to the end of the process; `replace`: has another one take its place; `told`: is
    told, once, how many seconds it took to be ready."""

    def __init__(
        self, grace: float, replace: Callable[[], None] = end_worker, told: Callable[[float], None] = lambda _: None
    ) -> None:
        self._replace, self._told = replace, told
        self._grace = max(grace - HAND_BACK_SECONDS, grace / 2)
        self._ready = False
        self._failure: TransientError | None = None
        self._handed_back: Future[None] = Future()
        self.ends = math.inf
        """Monotonic time by which all work must be finished; known once the process stops."""
        self._woke: SimpleQueue[float] = SimpleQueue()

    def load(self, setup: Callable[[], None], leave: Callable[[int], None]) -> None:
        """Run `setup` in the background: then ready, or, when it raised, `leave(SETUP_FAILED)`."""
        background.start("loading", lambda: self._loaded(background.start("setup", setup), leave))

    def ready(self) -> None:
        """Everything is loaded and warm."""
        woke = round(time.time() - STARTED, 3)
        self._woke.put(woke)
        self._told(woke)
        self._failure = None
        self._ready = True
        log.info("ready", extra={"woke": woke})

    def waits(self, error: TransientError) -> None:
        """Not ready yet, for this reason, which probes and events are shown until it is."""
        self._failure = error

    def first_wake(self) -> float:
        """Seconds from the start of the process to ready, for whoever asks first; 0 for everyone after."""
        try:
            return self._woke.get_nowait()
        except Empty:
            return 0.0

    @property
    def stopping(self) -> bool:
        return self.ends < math.inf

    def check(self) -> None:
        """Return when new work may come in. Raises StoppingError, ModelLoadingError, or what spoilt the process."""
        if self._failure is not None:
            raise self._failure
        if self.stopping:
            raise StoppingError
        if not self._ready:
            raise ModelLoadingError

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns, or raises from the error tree; StoppingError when the grace period ends before it does.

        Anything else that it raises is a bug: logged here, and to everyone else a plain WakeswapError.
        """
        running = background.start("event", work)
        either: tuple[Future[Any], ...] = (running, self._handed_back)
        wait(either, return_when=FIRST_COMPLETED)
        if not running.done():
            raise StoppingError("Not finished before this process had to end.")
        error = running.exception()
        if isinstance(error, WakeswapError) and error.replaces_process:
            log.critical("this process must be replaced: %s", error, extra={"code": error.code})
            self._failure = _shown(error)
            self._replace()
        if error is not None and not isinstance(error, WakeswapError):
            log.error("the stage has a bug", exc_info=error)
            raise WakeswapError from error
        return running.result()

    def stop(self, *, at_once: bool = False) -> None:
        """Refuse new work from now on, and hand back what is not finished in time. Safe in a signal handler."""
        seconds = 0.0 if at_once else self._grace
        self.ends = min(self.ends, time.monotonic() + seconds)
        background.start("hand back", lambda: self._hand_back(seconds))

    def _hand_back(self, seconds: float) -> None:
        time.sleep(seconds)
        with suppress(InvalidStateError):  # a second signal was faster
            self._handed_back.set_result(None)

    def _loaded(self, setup: Future[None], leave: Callable[[int], None]) -> None:
        error = setup.exception()
        if error is None:
            self.ready()
            return
        log.critical("setup failed", exc_info=error)
        self._failure = _shown(error)
        time.sleep(SHOWN_SECONDS)
        leave(SETUP_FAILED)


def stop_on_sigterm(lifecycle: Lifecycle) -> None:
    """Stop before the handler that is there (gunicorn's, which ends its loop) does its part. Main thread only."""
    before = signal.getsignal(signal.SIGTERM)

    def handle(number: int, frame: FrameType | None) -> None:
        lifecycle.stop()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, handle)
    signal.siginterrupt(signal.SIGTERM, False)


def _shown(error: BaseException) -> TransientError:
    """What events and probes get to see: always something that may pass, or the broker would drop the events."""
    if isinstance(error, TransientError):
        return error
    if isinstance(error, WakeswapError):
        return SetupFailedError(error.detail, context={**error.context, "cause": error.code})
    return SetupFailedError()

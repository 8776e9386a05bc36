"""How often whoever may ask: sliding windows of a minute, by the library `limits`, in memory or in redis.

A store that does not answer limits nobody: rates keep a healthy service healthy, and a service that refuses everyone
because its counters are gone would be the greater harm. Each request that passes so is counted, each failure logged.
Knows no web framework; imports `limits`, and redis' client, when something is first counted.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from logging import getLogger
from typing import TYPE_CHECKING, TypeVar

from shared.context import Metrics
from shared.edge_settings import RateSettings
from shared.serving import rate_stores

if TYPE_CHECKING:
    from limits.strategies import FixedWindowRateLimiter, SlidingWindowCounterRateLimiter

T = TypeVar("T")
log = getLogger(__name__)

MINUTE = 60
REST_SECONDS = 5.0
"""How long a store that failed is left alone: its time-out would otherwise be in every request."""


@dataclass(frozen=True)
class Quota:
    """A rule and where somebody stands with it."""

    name: str
    """`key`, `address`, `notifications` or `block`; shown to callers."""
    amount: int
    seconds: int
    passed: bool
    remaining: int
    wait: int
    """Whole seconds until the window is a request freer: when none remains, until one more may come."""

    def headers(self) -> list[tuple[str, str]]:
        """RateLimit-Policy and RateLimit, structured fields of draft-ietf-httpapi-ratelimit-headers-10."""
        policy = f'"{self.name}";q={self.amount};w={self.seconds}'
        return [("RateLimit-Policy", policy), ("RateLimit", f'"{self.name}";r={self.remaining};t={self.wait}')]


class Rates:
    def __init__(self, settings: RateSettings, metrics: Metrics, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings, self._metrics, self._clock = settings, metrics, clock
        self._opening = threading.Lock()
        self._store: _Store | None = None
        self._rests_until = float("-inf")

    def take(self, rule: str, who: str) -> Quota | None:
        """Count one request of `who` by a rule; None: there is no such limit, or its store does not answer.

        One that did not pass is not counted: who keeps asking does not wait the longer for it.
        """
        amount = self._amounts()[rule]
        return self._told(self._ask(lambda store: store.take(rule, who, amount))) if amount else None

    def blocked(self, address: str) -> Quota | None:
        """The block that this address is under, if any."""
        if not self._settings.failures:
            return None
        return self._told(self._ask(lambda store: store.blocked(address, self._settings.block_seconds)))

    def failed(self, address: str) -> None:
        """Count a wrong key or token; one too many within a minute blocks the address."""
        failures, seconds = self._settings.failures, self._settings.block_seconds
        if failures and self._ask(lambda store: store.failed(address, failures, seconds)):
            self._metrics.count("addresses_blocked")
            log.warning("too many wrong keys or tokens from one address: blocked", extra={"seconds": seconds})

    def _told(self, quota: Quota | None) -> Quota | None:
        if quota is not None and not quota.passed:
            self._metrics.count("rate_refusals", rule=quota.name)
        return quota

    def _amounts(self) -> dict[str, int]:
        settings = self._settings
        return {"key": settings.per_key, "address": settings.per_address, "notifications": settings.notifications}

    def _ask(self, question: Callable[[_Store], T]) -> T | None:
        if self._clock() < self._rests_until:
            self._metrics.count("requests_unlimited")
            return None
        store = self._opened()
        from limits.errors import StorageError

        try:
            return question(store)
        except StorageError as error:
            self._rests_until = self._clock() + REST_SECONDS
            self._metrics.count("requests_unlimited")
            log.error("the store of rate limits fails, requests pass: %s", error)  # noqa: TRY400 - no bug of ours
            return None

    def _opened(self) -> _Store:
        """The first to come imports `limits`, alone: its modules import each other, and two threads would deadlock."""
        with self._opening:
            if self._store is None:
                self._store = _Store(*rate_stores.limiters(self._settings.store), self._settings.store == "memory")
            return self._store


class _Store:
    def __init__(
        self, sliding: SlidingWindowCounterRateLimiter, fixed: FixedWindowRateLimiter, in_memory: bool
    ) -> None:
        # in memory, the library's own locks let some first requests at once pass uncounted
        self._exact: AbstractContextManager[object] = threading.Lock() if in_memory else nullcontext()
        self._sliding, self._fixed = sliding, fixed

    def take(self, rule: str, who: str, amount: int) -> Quota:
        from limits import RateLimitItemPerSecond

        item = RateLimitItemPerSecond(amount, MINUTE)
        with self._exact:
            passed = self._sliding.hit(item, rule, who)
            stats = self._sliding.get_window_stats(item, rule, who)
        # A full window that ends becomes the one before, which still weighs all it has: one request's share longer.
        wait = stats.reset_time - time.time() + MINUTE / amount
        return Quota(rule, amount, MINUTE, passed, stats.remaining if passed else 0, max(1, math.ceil(wait)))

    def blocked(self, address: str, seconds: int) -> Quota | None:
        from limits import RateLimitItemPerSecond

        item = RateLimitItemPerSecond(1, seconds)
        with self._exact:
            if self._fixed.test(item, "block", address):
                return None
            ends = self._fixed.get_window_stats(item, "block", address).reset_time
        return Quota("block", 1, seconds, False, 0, max(1, math.ceil(ends - time.time())))

    def failed(self, address: str, failures: int, seconds: int) -> bool:
        """Whether this one blocks the address."""
        from limits import RateLimitItemPerSecond

        item = RateLimitItemPerSecond(failures, MINUTE)
        with self._exact:
            if self._fixed.hit(item, "failures", address) and self._fixed.test(item, "failures", address):
                return False
            return self._fixed.hit(RateLimitItemPerSecond(1, seconds), "block", address)

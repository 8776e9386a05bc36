"""Where rates are counted: this process's memory, or a redis that all processes share. The only importer of redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.errors import ConfigError

if TYPE_CHECKING:
    from limits.storage import Storage
    from limits.strategies import FixedWindowRateLimiter, SlidingWindowCounterRateLimiter

TIMEOUT_SECONDS = 0.25
"""For a connection, and for an answer: it counts two numbers."""


def limiters(store: str) -> tuple[SlidingWindowCounterRateLimiter, FixedWindowRateLimiter]:
    """`store`: `memory` or a redis address. Connects to nothing yet. Raises ConfigError."""
    from limits.strategies import FixedWindowRateLimiter, SlidingWindowCounterRateLimiter

    opened = _memory() if store == "memory" else _redis(store)
    return SlidingWindowCounterRateLimiter(opened), FixedWindowRateLimiter(opened)


def _memory() -> Storage:
    from limits.storage import MemoryStorage

    return MemoryStorage()


def _redis(address: str) -> Storage:
    from limits.storage import RedisStorage

    try:
        from redis import ConnectionPool
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError as error:
        raise ConfigError("Rates in redis need the package redis.", context={"field": "rate_store"}) from error
    pool = ConnectionPool.from_url(
        address,
        socket_connect_timeout=TIMEOUT_SECONDS,
        socket_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 1),  # a connection that redis closed meanwhile is no failure
    )
    return RedisStorage(address, connection_pool=pool, key_prefix="wakeswap-rates", wrap_exceptions=True)

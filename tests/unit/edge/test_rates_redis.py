"""Counting in a real redis: all processes together, and nobody refused when it is gone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.edge_settings import RateSettings
from shared.serving.rates import REST_SECONDS, Rates
from tests.servers.redis import PASSWORD, Redis
from tests.unit.edge.test_rates import passed
from tests.unit.jobs.world import Counted

pytestmark = pytest.mark.slow


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    server.start()
    yield server
    server.stop()


def opened(server: Redis, counted: Counted | None = None, clock: Clock | None = None) -> Rates:
    settings = RateSettings(per_key=5, failures=3, block_seconds=100, store=server.address)
    return Rates(settings, counted or Counted(), clock or Clock())


def test_two_processes_count_together(redis: Redis) -> None:
    one, two = opened(redis), opened(redis)
    assert [passed(each.take("key", "a")) for each in (one, two) * 4] == [True] * 5 + [False] * 3
    assert passed(two.take("key", "b"))
    quota = one.take("key", "a")
    assert quota
    assert quota.remaining == 0
    assert 1 <= quota.wait <= 80


def test_a_block_holds_for_all_processes(redis: Redis) -> None:
    one, two = opened(redis), opened(redis)
    for each in (one, two, one):
        each.failed("192.0.2.1")
    block = two.blocked("192.0.2.1")
    assert block
    assert 90 <= block.wait <= 101
    assert two.blocked("192.0.2.2") is None


def test_while_redis_is_gone_requests_pass_and_are_counted(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    counted, clock = Counted(), Clock()
    limited = opened(redis, counted, clock)
    for _ in range(6):
        limited.take("key", "a")
    redis.kill()
    with caplog.at_level(logging.ERROR):
        assert [limited.take("key", "a") for _ in range(20)] == [None] * 20
        assert limited.blocked("192.0.2.1") is None
        limited.failed("192.0.2.1")
    assert counted.counts == {"rate_refusals.key": 1, "requests_unlimited": 22}
    assert len(caplog.records) == 1, "one line a rest, not one a request"
    assert PASSWORD not in caplog.text
    redis.start()
    assert limited.take("key", "a") is None, "left alone for a moment"
    clock.now += REST_SECONDS
    assert [passed(limited.take("key", "a")) for _ in range(6)] == [True] * 5 + [False]


def test_a_redis_that_restarted_between_two_requests_is_no_failure(redis: Redis) -> None:
    counted = Counted()
    limited = opened(redis, counted)
    assert passed(limited.take("key", "a"))
    redis.kill()
    redis.start()
    assert passed(limited.take("key", "a"))
    assert counted.counts == {}


def test_a_wrong_password_is_a_store_that_fails(redis: Redis) -> None:
    counted = Counted()
    wrong = redis.address.replace(PASSWORD, "wrong")
    assert Rates(RateSettings(store=wrong), counted).take("key", "a") is None
    assert counted.counts == {"requests_unlimited": 1}

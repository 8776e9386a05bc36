"""Counting in memory: how many pass, what is said about it, and who is blocked."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.edge_settings import RateSettings
from shared.serving.rates import Quota, Rates
from tests.unit.jobs.world import Counted


class Time:
    """Stands for time.time, by which the library counts."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr("time.time", made)
    return made


def rates(**settings: int) -> Rates:
    return Rates(RateSettings(**settings), Counted())  # type: ignore[arg-type]


def passed(quota: Quota | None) -> bool:
    assert quota is not None
    return quota.passed


def test_so_many_pass_in_a_minute() -> None:
    limited = rates(per_key=5)
    assert [passed(limited.take("key", "a")) for _ in range(8)] == [True] * 5 + [False] * 3
    assert passed(limited.take("key", "b")), "another key has its own"
    assert passed(limited.take("address", "a")), "and so has another rule"


def test_an_answer_says_where_one_stands() -> None:
    limited = rates(per_key=3)
    told = [limited.take("key", "a") for _ in range(4)]
    assert [quota.remaining for quota in told if quota] == [2, 1, 0, 0]
    for quota in told:
        assert quota
        policy, standing = quota.headers()
        assert policy == ("RateLimit-Policy", '"key";q=3;w=60')
        assert standing[0] == "RateLimit"
        match = re.fullmatch(r'"key";r=([0-9]+);t=([0-9]+)', standing[1])
        assert match
        assert 1 <= int(match[2]) <= 80, "the window, and a request's share of the one before"


@pytest.mark.parametrize("amount", [1, 3, 50])
def test_who_waits_as_told_may_come_again(time: Time, amount: int) -> None:
    """Wherever in the window one runs into the limit, one more passes after the seconds that were told."""
    for begin in range(0, 120, 7):
        time.now = Time.now + begin
        limited = rates(per_key=amount)
        for step in range(3 * amount):
            quota = limited.take("key", "a")
            assert quota
            if not quota.passed:
                time.now += quota.wait
                assert passed(limited.take("key", "a")), (begin, step, quota)
            time.now += 60 / amount / 3


def test_exactly_so_many_pass_when_all_come_at_once() -> None:
    for _ in range(20):
        limited, barrier = rates(per_key=5), threading.Barrier(16)

        def ask(_: int, limited: Rates = limited, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait(60)
            return passed(limited.take("key", "a"))

        with ThreadPoolExecutor(16) as pool:
            assert sum(pool.map(ask, range(16))) == 5


def test_no_limit_is_no_limit() -> None:
    free = rates(per_key=0, per_address=0, notifications=0, failures=0)
    assert [free.take(rule, "a") for rule in ("key", "address", "notifications")] == [None, None, None]
    for _ in range(100):
        free.failed("192.0.2.1")
    assert free.blocked("192.0.2.1") is None


def test_too_many_failures_block_an_address_for_the_time_that_is_set(time: Time) -> None:
    counted = Counted()
    limited = Rates(RateSettings(failures=3, block_seconds=100), counted)
    for _ in range(2):
        limited.failed("192.0.2.1")
    assert limited.blocked("192.0.2.1") is None
    limited.failed("192.0.2.1")
    limited.failed("192.0.2.1")  # came in with the one before
    block = limited.blocked("192.0.2.1")
    assert block
    assert (block.passed, block.wait) == (False, 100)
    assert limited.blocked("192.0.2.2") is None
    assert counted.counts == {"addresses_blocked": 1, "rate_refusals.block": 1}
    time.now += 99
    assert limited.blocked("192.0.2.1")
    time.now += 1
    assert limited.blocked("192.0.2.1") is None
    limited.failed("192.0.2.1")
    assert limited.blocked("192.0.2.1") is None, "its old failures are forgotten"


def test_failures_that_are_rare_block_nobody(time: Time) -> None:
    limited = rates(failures=3)
    for _ in range(50):
        limited.failed("192.0.2.1")
        assert limited.blocked("192.0.2.1") is None
        time.now += 31

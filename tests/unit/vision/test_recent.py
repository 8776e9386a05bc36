"""What was computed lately: kept, bounded, by any number of threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from shared.vision.recent import Recent


def test_made_once_and_the_least_recently_used_goes_first() -> None:
    made: list[str] = []

    def get(key: str) -> str:
        return recent.get(key, lambda: made.append(key) or key.upper())  # type: ignore[func-returns-value]

    recent: Recent[str, str] = Recent(2)
    assert [get(key) for key in "abab"] == ["A", "B", "A", "B"]
    assert made == ["a", "b"]
    get("a")
    get("c")
    assert len(recent) == 2
    assert [get("a"), get("c"), get("b")] == ["A", "C", "B"]
    assert made == ["a", "b", "c", "b"]


def test_a_failure_is_not_kept() -> None:
    recent: Recent[str, int] = Recent(2)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: 1 // 0)
    assert recent.get("a", lambda: 1) == 1


def test_nobody_waits_for_another_s_work() -> None:
    recent: Recent[str, int] = Recent(1)
    both = threading.Barrier(2, timeout=10)

    def make() -> int:
        return both.wait()

    with ThreadPoolExecutor(2) as threads:
        values = [done.result() for done in [threads.submit(recent.get, "a", make) for _ in range(2)]]
    assert sorted(values) == [0, 1]
    assert len(recent) == 1

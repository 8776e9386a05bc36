"""SEC-07, the decisions alone: what is taken, counted, renewed and given back, for any order of events."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.tenancy import quota
from shared.tenancy.quota import DAY, MINUTE, Slot, Usage, Window
from shared.tenancy.tenant import Policy

NOW = 1_800_000_000.0
LEASE = 100.0
POLICY = Policy(max_concurrent=3, max_batch=1, jobs_per_minute=5, jobs_per_day=7)


def taken(usage: Usage, job: str, *, batch: bool = False, now: float = NOW) -> Usage:
    return quota.take(usage, job, batch=batch, now=now, seconds=LEASE)


def limit(usage: Usage, policy: Policy = POLICY, *, batch: bool = False, now: float = NOW) -> str:
    found = quota.broken(usage, policy, batch=batch, now=now)
    return found.name if found else ""


def test_slots_are_taken_one_by_one_and_batches_have_fewer() -> None:
    usage = taken(Usage(), "a", batch=True)
    assert [limit(usage, batch=True), limit(usage)] == ["max_batch", ""]
    usage = taken(taken(usage, "b"), "c")
    assert limit(usage) == "max_concurrent"
    assert limit(quota.release(usage, "a"), batch=True) == ""


def test_a_job_has_one_slot_and_counts_once() -> None:
    once = taken(Usage(), "a")
    assert taken(once, "a") == once
    assert (len(once.slots), once.minute.jobs, once.day.jobs) == (1, 1, 1)


def test_sec_07_given_back_twice_is_given_back_once() -> None:
    usage = taken(taken(Usage(), "a"), "b")
    free = quota.release(usage, "a")
    assert quota.release(free, "a") == free
    assert [slot.job for slot in free.slots] == ["b"]
    assert free.minute.jobs == 2, "a job that ended has been taken in"


def test_a_job_that_never_began_is_not_counted() -> None:
    usage = quota.give_back(taken(taken(Usage(), "a"), "b"), "a")
    assert (usage.minute.jobs, usage.day.jobs) == (1, 1)
    assert quota.give_back(usage, "a") == usage
    begun = quota.give_back(replace(taken(Usage(), "a"), minute=Window(5, 3), day=Window(6, 3)), "a")
    assert (begun.minute.jobs, begun.day.jobs) == (3, 3), "counted in another window"


def test_a_lease_that_ran_out_frees_the_slot_for_another_job_only() -> None:
    usage = Usage()
    for job in ("a", "b", "c"):
        usage = taken(usage, job)
    later = NOW + LEASE
    assert limit(usage, now=later - 1) == "max_concurrent"
    assert limit(usage, now=later) == ""
    renewed = taken(usage, "a", now=later)
    assert {slot.job: slot.expires for slot in renewed.slots}["a"] == later + LEASE, "nobody else has it: it stays"
    assert [slot.job for slot in taken(usage, "d", now=later).slots] == ["d"]


def test_a_lease_is_renewed_when_half_is_gone_and_never_brought_back() -> None:
    usage = taken(Usage(), "a")
    assert quota.renew(usage, "a", now=NOW + LEASE / 2 - 1, seconds=LEASE) == usage
    (slot,) = quota.renew(usage, "a", now=NOW + LEASE / 2, seconds=LEASE).slots
    assert slot.expires == NOW + 1.5 * LEASE
    assert quota.renew(Usage(), "a", now=NOW, seconds=LEASE) == Usage()


def test_a_lease_from_a_clock_that_was_wrong_does_not_block() -> None:
    usage = Usage((Slot("a", False, NOW, NOW + 10 * 365 * DAY),))
    assert limit(usage, replace(POLICY, max_concurrent=1)) == ""


@pytest.mark.parametrize(("name", "length"), [("jobs_per_minute", MINUTE), ("jobs_per_day", DAY)])
def test_windows_end_and_say_when(name: str, length: int) -> None:
    many, usage = replace(POLICY, max_concurrent=1000, jobs_per_minute=1000, jobs_per_day=1000), Usage()
    begun = NOW - NOW % DAY + 7
    for index in range(5):
        usage = taken(usage, str(index), now=begun)
    policy = replace(many, **{name: 5})  # type: ignore[arg-type]
    found = quota.broken(usage, policy, batch=False, now=begun)
    assert found == quota.Limit(name, 5, length - 7)
    assert limit(usage, policy, now=begun + length - 8) == name
    assert limit(usage, policy, now=begun + length - 7) == ""
    assert limit(usage, policy, now=begun - 8) == name, "a machine whose clock is a little behind counts on"


def test_the_limit_that_lasts_longest_is_told() -> None:
    policy = replace(POLICY, max_concurrent=1, jobs_per_minute=1, jobs_per_day=1)
    assert limit(taken(Usage(), "a"), policy) == "jobs_per_day"


def test_the_longest_lease_counts_on_a_machine_whose_clock_is_behind() -> None:
    usage = quota.take(Usage(), "a", batch=False, now=NOW, seconds=86_400)
    assert limit(usage, replace(POLICY, max_concurrent=1), now=NOW - 30) == "max_concurrent"


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "batch", "release", "give_back", "renew", "wait"]),
        st.sampled_from("abcdefg"),
        st.integers(0, 130),
    ),
    max_size=60,
)


@given(STEPS)
def test_sec_07_never_over_never_below_zero_in_any_order(steps: list[tuple[str, str, int]]) -> None:
    usage, now = Usage(), NOW
    for step, job, seconds in steps:
        if step in ("take", "batch"):
            if quota.held(usage, job) or not limit(usage, batch=step == "batch", now=now):
                usage = taken(usage, job, batch=step == "batch", now=now)
        elif step == "wait":
            now += seconds
        elif step == "renew":
            usage = quota.renew(usage, job, now=now, seconds=LEASE)
        else:
            usage = (quota.release if step == "release" else quota.give_back)(usage, job)
        live = [slot for slot in usage.slots if slot.live(now)]
        assert len(live) <= POLICY.max_concurrent
        assert sum(slot.batch for slot in live) <= POLICY.max_batch
        assert len({slot.job for slot in usage.slots}) == len(usage.slots)
        assert 0 <= usage.minute.jobs <= POLICY.jobs_per_minute
        assert 0 <= usage.day.jobs <= POLICY.jobs_per_day

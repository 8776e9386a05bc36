"""Wake-ahead under the local platform: what a tenant's policy wakes, and that waking does not count as work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.local.machine import ROOT, Machine
from tests.local.test_pipeline import COMPLETED, FACE, machine, post

__all__ = ["machine"]
REFUSED = ROOT / "tests/data/image/truncated_60pct.jpg"
pytestmark = pytest.mark.slow


def woken(one: Machine) -> set[str]:
    return {name for name, service in one.admin("/status")["services"].items() if service["wakes"]}


@pytest.mark.parametrize(
    ("policy", "refused_wakes"),
    [("ahead", {"detect", "swap", "publish"}), ("after-moderation", set()), ("none", set())],
)
def test_a_refused_job_wakes_what_the_tenants_policy_says(
    machine: Callable[..., Machine], policy: str, refused_wakes: set[str]
) -> None:
    one = machine(tenants={"demo": {"policy": {"wake": policy}}}, idle=2)
    one.up()
    status, problem = post(one, FACE / "one_face.jpg", REFUSED)
    assert (status, problem["code"]) == (422, "media_truncated")
    one.until(one.asleep, 60)
    assert woken(one) == {"intake", "moderate", "notify", "meter"} | refused_wakes
    assert post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg")[0] == 200
    assert woken(one) >= {"detect", "swap", "publish"}


@pytest.mark.timeout(600)
def test_twenty_wakes_in_a_row_lose_nothing_and_leave_nothing(machine: Callable[..., Machine]) -> None:
    """Each job comes while every function sleeps; the caller gets its picture, and then no process is left."""
    one, wakes = machine(idle=2), 20
    one.up()
    answers = []
    for number in range(wakes):
        one.until(one.asleep, 60)
        assert one.processes() == []  # and so none of their memory
        answers.append(
            post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg", **{"Idempotency-Key": str(number)})
        )
    assert [status for status, _ in answers] == [200] * wakes
    ends = one.outcomes()
    assert set(ends) == {job["id"] for _, job in answers}
    assert {end["type"] for end in ends.values()} == {COMPLETED}
    one.until(one.asleep, 60)
    one.until(lambda: one.processes() == [], 10)
    services = one.admin("/status")["services"]
    for name in ("intake", "moderate", "detect", "swap", "publish"):
        assert len(services[name]["wakes"]) >= wakes, name  # more where one fell asleep again before its turn
    history = one.admin("/events?limit=1000")
    assert {entry["state"] for entry in history} == {"done"}
    assert {entry["failures"] for entry in history} == {0}

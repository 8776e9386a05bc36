"""A setup that meets a full GPU is made again, within its time, and nothing else is."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from shared.errors import GpuFaultError, GpuMemoryError, GpuUnavailableError, ModelNotFoundError
from shared.serving.patience import MOST_SECONDS, patiently


@dataclass
class Setup:
    """Raises its errors one after the other, then works; time passes only while it is slept."""

    errors: list[Exception]
    now: float = 0.0
    pauses: list[float] = field(default_factory=list)
    shown: list[GpuUnavailableError] = field(default_factory=list)

    def __call__(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def run(self, seconds: float) -> None:
        patiently(self, seconds, self.shown.append, self.sleep, lambda: self.now)()


def test_cold_06_it_waits_longer_each_time_and_says_why() -> None:
    setup = Setup([GpuMemoryError("full"), GpuUnavailableError("no context"), *[GpuMemoryError("full")] * 4])
    setup.run(600)
    assert setup.pauses == [1, 2, 4, 8, 15, 15]
    assert max(setup.pauses) == MOST_SECONDS
    assert {error.code for error in setup.shown} == {"gpu_unavailable"}
    assert [error.context["cause"] for error in setup.shown][:2] == ["gpu_out_of_memory", "gpu_unavailable"]


def test_cold_06_it_ends_with_the_fault_when_its_time_is_up() -> None:
    setup = Setup([GpuMemoryError("full")] * 100)
    with pytest.raises(GpuMemoryError):
        setup.run(60)
    assert sum(setup.pauses) <= 60
    assert setup.pauses


def test_without_a_time_it_waits_for_nothing() -> None:
    setup = Setup([GpuMemoryError("full")])
    with pytest.raises(GpuMemoryError):
        setup.run(0)
    assert not setup.pauses


@pytest.mark.parametrize("error", [ModelNotFoundError("gone"), GpuFaultError("broken"), ZeroDivisionError()])
def test_what_no_waiting_mends_is_told_at_once(error: Exception) -> None:
    setup = Setup([error])
    with pytest.raises(type(error)):
        setup.run(600)
    assert not setup.pauses

"""The GPU's checks on the CPU, with little work: what runs on a GPU once in a while is known to run at all."""

from __future__ import annotations

import pytest

from shared.vision.runtime import Runtime
from tests.gpu import checks
from tests.standins.swappers import Build
from tests.standins.world import StandIns

LIGHT = Build()


@pytest.fixture(scope="module")
def cpu() -> Runtime:
    return Runtime(threads=1)


@pytest.mark.filterwarnings("ignore:`estimate` is deprecated:FutureWarning")
def test_parity(cpu: Runtime, standins: StandIns) -> None:
    pytest.importorskip("insightface", reason="insightface is not installed (tests/requirements-no-deps.txt)")
    found = checks.parity(cpu, standins, LIGHT)
    assert (found.crop, found.beyond) == (0, 0.0)
    assert found.frame <= 1


def test_throughput(cpu: Runtime, standins: StandIns) -> None:
    assert checks.throughput(cpu, standins, checks.Load(LIGHT, frames=4, faces=2, threads=2)) > 0


def test_batch_gain(cpu: Runtime, standins: StandIns) -> None:
    assert checks.batch_gain(cpu, standins, LIGHT, rows=4, repeats=2) > 0

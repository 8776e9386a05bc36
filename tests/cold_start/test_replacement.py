"""A process that cannot be trusted any more answers, ends, and has another in its place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.services.process import running
from tests.unit.serving.support import event

pytestmark = pytest.mark.slow


def test_out_of_memory_ends_the_worker_and_the_next_one_does_the_work(tmp_path: Path) -> None:
    with running("exhausted", tmp_path) as process:
        process.wait_ready()
        first = process.deliver(event())
        assert (first.status, first.code) == (503, "gpu_out_of_memory")
        assert int(first.headers["Retry-After"]) > 0
        ends = time.monotonic() + 30
        while process.log().count("Booting worker") < 2:
            assert time.monotonic() < ends, process.log()
            time.sleep(0.05)
        process.wait_ready()
        assert process.deliver(event()).status == 200
        assert process.process.poll() is None, "the master, and with it the pod, went on"
        assert '"level": "critical"' in process.log().lower()

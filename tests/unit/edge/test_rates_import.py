"""The first requests come at once, and each of them counts: `limits` is imported by one thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
AT_ONCE = """
import sys, threading, time
sys.setswitchinterval(1e-6)
from shared.edge_settings import RateSettings
from shared.serving.rates import Rates

class Silent:
    def count(self, *_, **__): pass
    def gauge(self, *_, **__): pass
    def observe(self, *_, **__): pass

rates, start, passed = Rates(RateSettings(), Silent()), threading.Barrier(40), []

def ask(late):
    start.wait()
    time.sleep(late)  # some come while the first is half-way through its imports
    passed.append(rates.take("key", "a").passed)

threads = [threading.Thread(target=ask, args=(0.003 * index,)) for index in range(40)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert passed == [True] * 40, passed
"""


@pytest.mark.slow
def test_the_first_requests_at_once_import_what_counts_them_without_a_deadlock() -> None:
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", AT_ONCE], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr

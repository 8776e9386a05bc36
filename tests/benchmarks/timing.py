"""CPU time of one piece of work, for the benchmarks that compare arrays-in, arrays-out code."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_ms(work: Callable[[], object], runs: int) -> float:
    """Least CPU time, in milliseconds."""
    times = []
    for _ in range(runs + 1):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times[1:]) * 1000

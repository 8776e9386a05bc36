"""How many threads a process may use: the pod's limit, not the node's cores.

Knows the two kernel interfaces that say so and nothing else.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""cgroup v2: `<quota> <period>` in microseconds, or `max <period>` when there is no limit."""


def cpu_limit(path: Path = CPU_MAX) -> int:
    """Threads worth starting, at least 1: the cgroup's quota rounded up, never more than the cores we may run on.

    A missing or unreadable file and the quota `max` mean no limit.
    """
    cores = len(os.sched_getaffinity(0))
    quota = _quota(path)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _quota(path: Path) -> float | None:
    try:
        quota, period = path.read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None

"""How many threads a process may use: the pod's limit, not the node's cores.

Knows the two kernel interfaces that say so, and the variables by which libraries are told.
"""

from __future__ import annotations

import math
import os
from collections.abc import MutableMapping
from pathlib import Path

_POOLS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OPENCV_THREAD_POOL_ACTIVE_WAIT_WORKER": "0",
    "OPENCV_THREAD_POOL_ACTIVE_WAIT_MAIN": "0",
}
"""numpy's matrices are small here, and its pool would spin through
0.2 s of CPU in every wake (bench_wake); OpenCV's spins between two calls, a sixth of the CPU in which a video's faces
are followed. onnxruntime and OpenCV count their threads by `cpu_limit`."""
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""cgroup v2: `<quota> <period>` in microseconds, or `max <period>` when there is no limit."""


def quiet(environ: MutableMapping[str, str]) -> None:
    """Tell libraries that are loaded later, here or by a child that inherits it, not to let idle threads spin; what is
    set already holds."""
    for name, value in _POOLS.items():
        environ.setdefault(name, value)


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

"""Waiting for a GPU that another process still holds, instead of ending and being started again and again.

A pod that comes while its predecessor drains, or beside another on a shared GPU, finds no memory: a matter of minutes,
which a crash loop with its growing pauses only lengthens. Knows the error tree and time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from logging import getLogger

from shared.errors import GpuMemoryError, GpuUnavailableError

FIRST_SECONDS, MOST_SECONDS = 1.0, 15.0
"""The pause before the second try, and the longest; each is twice the one before."""

log = getLogger(__name__)


def patiently(
    setup: Callable[[], None],
    seconds: float,
    waiting: Callable[[GpuUnavailableError], None],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Callable[[], None]:
    """`setup`, tried again for up to `seconds` while the GPU has no room for it; `waiting` is told each time why.

    What is loaded already stays loaded and is not loaded again. Raises what `setup` raises: any other error at once,
    GpuMemoryError and GpuUnavailableError when the time is up.
    """

    def patient() -> None:
        ends, pause = clock() + seconds, FIRST_SECONDS
        while True:
            try:
                setup()
            except (GpuMemoryError, GpuUnavailableError) as error:
                if clock() + pause > ends:
                    raise
                log.warning("waiting for the GPU: %s", error.detail, extra={"code": error.code, "pause": pause})
                waiting(GpuUnavailableError("Waiting for memory of the GPU.", context={"cause": error.code}))
                sleep(pause)
                pause = min(2 * pause, MOST_SECONDS)
            else:
                return

    return patient

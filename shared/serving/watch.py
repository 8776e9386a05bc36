"""Whether a job still wants what is being made for it: looked at beside long work, in the rhythm of its lease.

Knows the error tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared.errors import WakeswapError


class JobOverError(WakeswapError):
    """The job was cancelled or has ended while a part of it was worked on: the work stops, and nothing is said."""

    status = 409
    code = "job_over"
    title = "The job is over"


@dataclass
class Watch:
    """Called as the lease is renewed; the work itself asks `over`, which costs nothing."""

    ask: Callable[[], bool]
    """May raise what a store raises: then the next call asks again."""
    over: bool = False

    def __call__(self) -> None:
        self.over = self.over or self.ask()

    def check(self) -> None:
        if self.over:
            raise JobOverError

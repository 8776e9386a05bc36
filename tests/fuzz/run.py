"""One fuzzing run: requests and events by turns, and what the processes' memory does meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import calls, told
from tests.fuzz.sent import Tally
from tests.fuzz.servers import Server, servers

_ROUND = 100
"""Requests of one round, of which each kind has its share."""


@dataclass(frozen=True)
class Figures:
    tally: Tally
    seconds: float
    warm: dict[str, int]
    """Resident bytes of each process after the warm-up."""
    end: dict[str, int]
    """And after the last request."""

    @property
    def growth(self) -> dict[str, float]:
        """As a part of what it was."""
        return {name: self.end[name] / self.warm[name] - 1 for name in self.warm}


def run(root: Path, count: int, warm_up: int, first: int = 0) -> Figures:
    """`count` requests, the memory compared after `warm_up` of them. The same `first` sends the same again."""
    begun, tally, warm = time.monotonic(), Tally(), dict[str, int]()
    with servers(root) as running:
        for number in range(first, first + -(-count // _ROUND)):
            if not warm and tally.count >= warm_up:
                warm = _memory(running)
            _one_round(running, tally, number)
            for name, server in running.items():
                assert server.process.process.poll() is None, f"{name} has ended: {server.process.log()[-3000:]}"
        end = _memory(running)
    return Figures(tally, time.monotonic() - begun, warm, end)


def _one_round(running: dict[str, Server], tally: Tally, number: int) -> None:
    intake = running["intake"]
    calls.from_document(intake, tally, 40, number)
    calls.damaged(intake, tally, 10, number)
    calls.pictures(intake, tally, 5, number)
    told.notifications(intake, tally, 10, number)
    told.events(running, tally, _ROUND - 65, number)


def _memory(running: dict[str, Server]) -> dict[str, int]:
    return {name: server.memory() for name, server in running.items()}

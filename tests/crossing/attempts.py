"""The matrix: every way in, times every way to name what is not one's own, as a table of things to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.crossing import asking, telling
from tests.crossing.world import Target, World


@dataclass(frozen=True)
class Attempt:
    name: str
    do: Callable[[World, Target], None]


def table() -> list[Attempt]:
    made = list(_rows())
    assert len({attempt.name for attempt in made}) == len(made)
    return made


def _rows() -> Iterator[Attempt]:
    for part in (*asking.PARTS, *telling.PARTS):
        for name, do in part():
            yield Attempt(name, do)

"""The parts of a price file: tables and ladders of decimals, read strictly. Knows no file."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias, TypeVar

Table: TypeAlias = Mapping[str, Decimal]
T = TypeVar("T")

_NUMBER = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")


class PriceError(ValueError):
    """What is wrong with a price file, and where in it."""


@dataclass(frozen=True)
class Ladder:
    """Steps that each hold up to a size; the last holds for every larger one."""

    steps: tuple[tuple[Decimal, Decimal], ...]
    """Size and factor, in rising order."""
    last: Decimal

    def factor(self, size: int) -> Decimal:
        return next((factor for up_to, factor in self.steps if size <= up_to), self.last)

    @classmethod
    def read(cls, document: Mapping[str, object], name: str) -> Ladder:
        """Raises PriceError naming the step."""
        entries = part(document, name, list)
        steps: list[tuple[Decimal, Decimal]] = []
        for index, entry in enumerate(entries):
            where = f"{name}[{index}]."
            if not isinstance(entry, dict):
                raise PriceError(f"{where[:-1]} is not a table")
            is_last = index == len(entries) - 1
            refuse_unknown(entry, ("factor",) if is_last else ("factor", "up_to"), where)
            factor = number(entry, "factor", where)
            if is_last:
                return cls(tuple(steps), factor)
            steps.append((number(entry, "up_to", where), factor))
            if steps[-1][0] <= max((up_to for up_to, _ in steps[:-1]), default=Decimal(-1)):
                raise PriceError(f"{where}up_to is not above the step before")
        raise PriceError(f"{name} has no step")


def part(document: Mapping[str, object], name: str, kind: type[T]) -> T:
    """Raises PriceError where it is missing or of another kind."""
    found = document.get(name)
    if not isinstance(found, kind):
        raise PriceError(f"{name} is missing or not of the right kind")
    return found


def text(document: Mapping[str, object], name: str, pattern: str, meant: str) -> str:
    """`meant`: what the pattern says, in words. Raises PriceError where it is missing or does not match."""
    found = part(document, name, str)
    if not re.fullmatch(pattern, found):
        raise PriceError(f"{name} is not {meant}")
    return found


def number(entries: Mapping[str, object], name: str, where: str) -> Decimal:
    """A decimal written as text: `"0.25"`. Raises PriceError for anything else."""
    found = entries.get(name)
    if not isinstance(found, str) or not _NUMBER.fullmatch(found):
        raise PriceError(f'{where}{name} is not a decimal in quotes, such as "0.25", of at most 12 digits each side')
    return Decimal(found)


def refuse_unknown(entries: Iterable[str], known: Container[str], where: str) -> None:
    """Raises PriceError for the first name that is not known."""
    for name in entries:
        if name not in known:
            raise PriceError(f"{where}{name} is not known")

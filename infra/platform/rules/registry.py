"""Rules by name: each looks at a whole stack and says where it is wrong.

A rule's name is also that of its seed, the manifest in tests/data/knative/seeds that only this rule catches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from infra.platform.stack import Stack

Look: TypeAlias = Callable[[Stack], Iterable[tuple[str, str]]]
"""Yields (kind, name and field; what is wrong)."""


class Finding(NamedTuple):
    rule: str
    where: str
    says: str

    def __str__(self) -> str:
        return f"{self.where}: {self.says} [{self.rule}]"


@dataclass(frozen=True)
class Rule:
    name: str
    why: str
    """What happens on a cluster when nobody looks."""
    look: Look


RULES: dict[str, Rule] = {}


def rule(name: str, why: str) -> Callable[[Look], Look]:
    """Enter a function as the rule `name`."""

    def enter(look: Look) -> Look:
        RULES[name] = Rule(name, why, look)
        return look

    return enter


def findings(stack: Stack) -> list[Finding]:
    """Of all rules, in the order in which they were entered."""
    return [Finding(each.name, *found) for each in RULES.values() for found in each.look(stack)]

"""What is sent in a fuzzing run, and what came of it: plain data."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

from shared.errors import TransientError

LIMIT_SECONDS = 60.0
"""An answer that takes longer counts as a hang, on a machine of any load."""


@dataclass(frozen=True)
class Answer:
    status: int
    """0: the connection was closed without one."""
    kind: str
    """Content type."""
    body: bytes
    seconds: float


@dataclass
class Tally:
    """Counts by door and status, and every answer that must not be."""

    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def note(self, door: str, what: str, answer: Answer, *, raw: bool = False, bodyless: bool = False) -> None:
        """`raw`: bytes that may be no request at all, so that no answer, or that of the parser, is one."""
        self.statuses.setdefault(door, Counter())[answer.status] += 1
        self.slowest = max(self.slowest, answer.seconds)
        if problem := _problem(answer, raw=raw, bodyless=bodyless):
            self.faults.append(f"{door}: {problem}: {what} -> {answer.status} {answer.body[:300]!r}")

    @property
    def count(self) -> int:
        return sum(counter.total() for counter in self.statuses.values())


def _problem(answer: Answer, *, raw: bool, bodyless: bool) -> str:
    if answer.seconds > LIMIT_SECONDS:
        return f"took {answer.seconds:.0f} s"
    if answer.status == 0:
        return "" if raw else "no answer"
    if answer.status < 400:
        return ""
    if answer.status == 501 and raw:
        return ""  # a Transfer-Encoding that the parser does not know (SEC-08)
    if bodyless:
        return "a server error" if answer.status >= 500 else ""
    if answer.kind != "application/problem+json":
        return "an error that is no problem document"
    code = json.loads(answer.body)["code"]
    if answer.status >= 500 and not (answer.status == 503 and code in _transient(TransientError)):
        return "a server error"
    return ""


def _transient(kind: type[TransientError]) -> set[str]:
    """Codes with which a 503 is said on purpose."""
    return {kind.code}.union(*(_transient(one) for one in kind.__subclasses__()))

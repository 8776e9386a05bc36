"""What is decided while one event is worked on, collected to be put on record in one piece with its end.

The harness opens a journal around the work, as it binds the log's fields; whoever decides notes it, in the same
thread or in one that got a copy of its context. Knows context variables only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from logging import getLogger

from shared.audit.lines import Line

log = getLogger(__name__)
_open: ContextVar[list[Line] | None] = ContextVar("wakeswap_journal", default=None)


@contextmanager
def opened() -> Iterator[list[Line]]:
    """The lines that are noted inside; an inner journal keeps its own."""
    lines: list[Line] = []
    token = _open.set(lines)
    try:
        yield lines
    finally:
        _open.reset(token)


def note(*lines: Line) -> None:
    """For the event that is worked on. Outside of any, which only a stage run by hand is, the log is told."""
    journal = _open.get()
    if journal is None:
        log.debug("decided outside of an event", extra={"decisions": [f"{one.what} {one.decision}" for one in lines]})
    else:
        journal.extend(lines)

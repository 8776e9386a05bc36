"""Spans: what was done between two moments of a trace, as plain data for whoever keeps it.

`Tracer.span` begins one that came from outside; `inside` one below it, anywhere in the call, and costs nothing where
nobody keeps spans. What a process does before it is ready waits in `Wake` and becomes part of the first event's trace:
a cold start is a part of the job that had to wait for it. Light: knows the standard library and the trace context;
`exporting` brings spans to OpenTelemetry.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Literal

from shared.telemetry.trace import Trace

Kind = Literal["server", "consumer", "producer", "client", "internal"]
"""OpenTelemetry's span kinds."""
Fact = str | int | float | bool

COLD_START = "cold start"
AHEAD_SECONDS = 60.0
"""How long before its first event a process may have become ready for its start to count as that event's: as long as a
wake-up call may run ahead (the delivery timeout of the Triggers in knative/base/wake-ahead.yaml)."""
_MOST = 64
"""Steps of one cold start that are kept."""


@dataclass(frozen=True)
class Span:
    name: str
    trace: Trace
    """Its own ids."""
    parent: str
    """The span id that it is below; empty at the top of a trace."""
    kind: Kind
    started: float
    """Seconds since the epoch."""
    ended: float
    facts: Mapping[str, Fact] = field(default_factory=dict)
    failed: str = ""
    """The code of the error that it ended with."""
    links: tuple[Trace, ...] = ()
    """Spans of other traces that it has to do with."""


Sink = Callable[[Span], None]
Sampler = Callable[[Trace | None], Trace]
"""From the caller's span, if there is one, to a new span below it."""


class Open:
    """A span under way; use as a context manager. What runs inside, and in copies of its context, is below it."""

    def __init__(
        self,
        name: str,
        trace: Trace,
        *,
        parent: str = "",
        kind: Kind = "internal",
        sink: Sink | None = None,
        links: Sequence[Trace] = (),
    ) -> None:
        self._name, self._parent, self._kind, self._links = name, parent, kind, tuple(links)
        self._facts: dict[str, Fact] = {}
        self._failed = ""
        self._started = time.time()
        self._token: Token[Open | None] | None = None
        self.trace = trace
        self.sink = sink if trace.sampled else None
        """Where the span goes; None: nobody keeps it."""

    def note(self, **facts: Fact) -> None:
        """Attributes, dots written as double underscores: `faas__coldstart`. Empty texts are left out."""
        self._facts.update({name.replace("__", "."): value for name, value in facts.items() if value != ""})

    def ids(self) -> dict[str, str]:
        """As log lines name them."""
        return {"trace_id": self.trace.trace_id, "span_id": self.trace.span_id}

    def failed_with(self, error: BaseException) -> None:
        """An error of ours fails the span; what the caller did wrong is a fact about it (OpenTelemetry's rule for
        servers)."""
        code = str(getattr(error, "code", type(error).__name__))
        if getattr(error, "status", 500) >= 500:
            self._failed = code
        else:
            self.note(wakeswap__code=code)

    def __enter__(self) -> Open:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _current.reset(self._token)
        if error is not None:
            self.failed_with(error)
        if self.sink is not None:
            times = self._started, time.time()
            self.sink(
                Span(self._name, self.trace, self._parent, self._kind, *times, self._facts, self._failed, self._links)
            )


_current: ContextVar[Open | None] = ContextVar("wakeswap_span", default=None)


def opened() -> Open | None:
    """The span that this code runs in."""
    return _current.get()


def current() -> Trace | None:
    """The ids of that span, for whoever is called from here."""
    found = _current.get()
    return found.trace if found else None


def inside(name: str, kind: Kind = "internal", **facts: Fact) -> AbstractContextManager[Open | None]:
    """A span below the current one; nothing at all where nobody keeps that one."""
    above = _current.get()
    if above is None or above.sink is None:
        return nullcontext()
    below = Open(name, above.trace.child(), parent=above.trace.span_id, kind=kind, sink=above.sink)
    below.note(**facts)
    return below


class Wake:
    """A process's start, kept until its first event says whose it was. Any number of threads may add steps."""

    def __init__(self, started: float) -> None:
        """`started`: when the process began, in seconds since the epoch."""
        self._started, self._ended = started, 0.0
        self._top = Trace.new(sampled=True)
        self._steps: list[Span] = []
        self._lock = threading.Lock()

    def steps(self) -> Open:
        """What runs inside becomes steps of this cold start."""
        return Open(COLD_START, self._top, sink=self._add)

    def ready(self) -> None:
        with self._lock:
            self._ended = self._ended or time.time()

    def below(self, caller: Trace, parent: str) -> list[Span]:
        """The cold start as spans of `caller`'s trace, the first time that this is asked; else none.

        None too when the process had been ready for so long that nobody waited for its start.
        """
        with self._lock:
            steps, self._steps, ended = self._steps, [], self._ended
            self._ended = -1.0
        if ended <= 0 or time.time() - ended > AHEAD_SECONDS:
            return []
        top = replace(caller, span_id=self._top.span_id)
        moved = [replace(step, trace=replace(caller, span_id=step.trace.span_id)) for step in steps]
        facts: dict[str, Fact] = {"faas.coldstart": True}
        return [Span(COLD_START, top, parent, "internal", self._started, ended, facts), *moved]

    def _add(self, span: Span) -> None:
        with self._lock:
            if span.name != COLD_START and len(self._steps) < _MOST and not self._ended:
                self._steps.append(span)


@dataclass(frozen=True)
class Tracer:
    """Begins spans for what comes in. Without a sink it only gives ids."""

    sample: Sampler
    sink: Sink | None = None
    wake: Wake | None = None
    """Of this process; None in tests of single parts."""

    def starting(self) -> AbstractContextManager[Open | None]:
        """What runs inside belongs to the start of this process."""
        return nullcontext() if self.sink is None or self.wake is None else self.wake.steps()

    def ready(self) -> None:
        if self.wake is not None:
            self.wake.ready()

    def span(self, name: str, caller: Trace | None, kind: Kind, *, links: Sequence[Trace] = ()) -> Open:
        own = self.sample(caller)
        opened = Open(name, own, parent=caller.span_id if caller else "", kind=kind, sink=self.sink, links=links)
        if self.sink is not None and self.wake is not None:
            for span in self.wake.below(own, caller.span_id if caller else ""):
                if own.sampled:
                    self.sink(span)
                    opened.note(faas__coldstart=True)
        return opened

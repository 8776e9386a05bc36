"""Spans: who is below whom, what a cold start belongs to, and that nothing is paid where nobody keeps them."""

from __future__ import annotations

import contextvars
import time
from contextlib import nullcontext

import pytest

from shared.errors import ForbiddenError, StoreUnavailableError
from shared.serving import background
from shared.telemetry.sampling import sampler, unsampled
from shared.telemetry.spans import AHEAD_SECONDS, COLD_START, Span, Tracer, Wake, current, inside, opened
from shared.telemetry.trace import Trace, nearest, parse

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CALLER = Trace(TRACE, SPAN, sampled=True)


class Kept:
    def __init__(self) -> None:
        self.spans: list[Span] = []

    def __call__(self, span: Span) -> None:
        self.spans.append(span)

    def names(self) -> list[str]:
        return [span.name for span in self.spans]


@pytest.fixture
def kept() -> Kept:
    return Kept()


def tracer(kept: Kept, wake: Wake | None = None) -> Tracer:
    return Tracer(sampler("parentbased_always_on"), kept, wake)


def test_what_runs_inside_a_span_is_below_it_in_other_threads_too(kept: Kept) -> None:
    def work() -> None:
        with inside("load", wakeswap__model="mesh"):
            pass

    with tracer(kept).span("swap", CALLER, "consumer") as span:
        background.start("event", work).result()
        assert current() == span.trace
    assert opened() is None
    load, swap = kept.spans
    assert (swap.trace.trace_id, swap.parent, swap.kind) == (TRACE, SPAN, "consumer")
    assert (load.trace.trace_id, load.parent) == (TRACE, swap.trace.span_id)
    assert load.facts == {"wakeswap.model": "mesh"}
    assert swap.started <= load.started <= load.ended <= swap.ended


def test_an_error_of_ours_fails_a_span_and_a_callers_is_a_fact_about_it(kept: Kept) -> None:
    for error in (StoreUnavailableError(), ForbiddenError(), KeyError("x")):
        with pytest.raises(type(error)), tracer(kept).span("intake", None, "server"):
            raise error
    ours, theirs, bug = kept.spans
    assert (ours.failed, theirs.failed, bug.failed) == ("store_unavailable", "", "KeyError")
    assert theirs.facts == {"wakeswap.code": "forbidden"}


def test_without_a_sink_there_are_ids_and_nothing_else() -> None:
    with Tracer(unsampled).span("swap", CALLER, "consumer") as span:
        assert (span.trace.trace_id, span.trace.sampled) == (TRACE, True)
        assert isinstance(inside("load"), nullcontext)
        assert current() == span.trace


def test_what_the_caller_does_not_keep_is_not_kept_here(kept: Kept) -> None:
    with tracer(kept).span("swap", Trace(TRACE, SPAN, sampled=False), "consumer"), inside("load"):
        pass
    assert kept.spans == []


def test_a_cold_start_belongs_to_the_first_event_and_to_no_other(kept: Kept) -> None:
    wake = Wake(time.time() - 2)
    traced = tracer(kept, wake)
    with traced.starting():
        context = contextvars.copy_context()
        context.run(lambda: _load("mesh"))
    traced.ready()
    for _ in range(2):
        with traced.span("swap", CALLER, "consumer"):
            pass
    cold, load, first, second = kept.spans
    assert [span.name for span in kept.spans] == [COLD_START, "load model", "swap", "swap"]
    assert {span.trace.trace_id for span in kept.spans} == {TRACE}
    assert (cold.parent, load.parent) == (SPAN, cold.trace.span_id)
    assert cold.ended - cold.started == pytest.approx(2, abs=1)
    assert cold.ended <= first.started
    assert (first.facts.get("faas.coldstart"), second.facts.get("faas.coldstart")) == (True, None)


def test_a_start_that_nobody_waited_for_is_in_no_trace(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    wake = Wake(time.time())
    traced = tracer(kept, wake)
    traced.ready()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + AHEAD_SECONDS + 1)
    with traced.span("swap", CALLER, "consumer"):
        pass
    assert kept.names() == ["swap"]


def test_steps_after_the_start_are_not_part_of_it(kept: Kept) -> None:
    wake = Wake(time.time())
    traced = tracer(kept, wake)
    with traced.starting():
        traced.ready()
        _load("late")
    with traced.span("swap", None, "consumer"):
        pass
    assert kept.names() == [COLD_START, "swap"]


def _load(model: str) -> None:
    with inside("load model", wakeswap__model=model):
        pass


@pytest.mark.parametrize(
    ("extension", "header", "expected"),
    [
        (str(CALLER), "", CALLER),
        ("", str(CALLER), CALLER),
        ("broken", "also", None),
        (str(CALLER), f"00-{TRACE}-{'1' * 16}-01", Trace(TRACE, "1" * 16, sampled=True)),
        (str(CALLER), f"00-{TRACE}-{'1' * 16}-00", CALLER),  # the broker keeps no span of its own
        (str(CALLER), f"00-{'2' * 32}-{'1' * 16}-01", CALLER),  # nor does it go on with ours
    ],
)
def test_a_broker_that_traces_is_nearer_than_the_producer(extension: str, header: str, expected: Trace | None) -> None:
    assert nearest(extension, header) == expected


@pytest.mark.parametrize(
    ("name", "ratio", "caller", "sampled"),
    [
        ("parentbased_always_on", 1, None, True),
        ("parentbased_always_off", 1, None, False),
        ("parentbased_always_off", 1, CALLER, True),
        ("always_off", 1, CALLER, False),
        ("always_on", 1, Trace(TRACE, SPAN, sampled=False), True),
        ("traceidratio", 0, CALLER, False),
        ("traceidratio", 1, CALLER, True),
        ("parentbased_traceidratio", 0, CALLER, True),
        ("parentbased_traceidratio", 0, None, False),
    ],
)
def test_samplers_decide_as_the_standard_says(name: str, ratio: float, caller: Trace | None, sampled: bool) -> None:
    span = sampler(name, ratio)(caller)
    assert span.sampled is sampled
    assert parse(str(span)) == span
    assert caller is None or (span.trace_id, span.span_id != caller.span_id) == (caller.trace_id, True)


def test_a_share_keeps_the_traces_that_the_sdk_would_keep() -> None:
    from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

    theirs, ours = TraceIdRatioBased(0.3), sampler("traceidratio", 0.3)
    decided = []
    for _ in range(500):
        trace = Trace.new()
        expected = theirs.should_sample(None, int(trace.trace_id, 16), "x").decision is Decision.RECORD_AND_SAMPLE
        assert ours(trace).sampled is expected
        decided.append(expected)
    assert 90 < sum(decided) < 210

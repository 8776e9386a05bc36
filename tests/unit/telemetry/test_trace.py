"""W3C traceparent, by the standard's own rules."""

from __future__ import annotations

import pytest

from shared.telemetry.trace import Trace, follow, parse

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("text", "sampled"),
    [
        (f"00-{TRACE}-{SPAN}-01", True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f" 00-{TRACE}-{SPAN}-03 ", True),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", True),
    ],
)
def test_valid_texts(text: str, sampled: bool) -> None:
    assert parse(text) == Trace(TRACE, SPAN, sampled)


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00_{TRACE}_{SPAN}_01",
        f"cc-{TRACE}-{SPAN}-01.more",
        f"00-{TRACE}-{SPAN}-01\n00",
    ],
)
def test_broken_texts_start_a_new_trace(text: str) -> None:
    assert parse(text) is None
    assert follow(text).trace_id != TRACE


def test_a_child_stays_in_the_trace_and_is_read_again() -> None:
    parent = f"00-{TRACE}-{SPAN}-01"
    child = follow(parent)
    assert (child.trace_id, child.sampled) == (TRACE, True)
    assert child.span_id != SPAN
    assert parse(str(child)) == child


def test_new_traces_differ() -> None:
    assert len({Trace.new().trace_id for _ in range(100)}) == 100
    assert parse(str(Trace.new()))

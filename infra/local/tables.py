"""What the command line shows: functions, queues and events as tables."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table


def status_table(status: Mapping[str, Any]) -> Table:
    """Every function: asleep, waking or awake, its last wake, what it has in hand, how its last process ended."""
    table = _table("functions", "function", "state", "last woke", "took", "in hand", "waiting", "port")
    table.add_column("last end", overflow="fold")
    for name, service in status["services"].items():
        last = service["wakes"][-1] if service["wakes"] else {}
        table.add_row(
            name,
            _coloured(service["state"]),
            _ago(last.get("created")),
            _seconds(span(last, "created", "ready")),
            str(service["in_flight"]),
            str(service["waiting"]),
            service["url"].rpartition(":")[2],
            escape(last.get("end") or ""),
        )
    return table


def queue_table(status: Mapping[str, Any]) -> Table:
    """Every Trigger and how many events stand before it."""
    table = _table("queues", "trigger", "waiting", "in flight", "retrying", "dead")
    for name, queue in status["queues"].items():
        table.add_row(name, *(str(queue[key]) for key in ("waiting", "in_flight", "retrying", "dead")))
    return table


def job_table(status: Mapping[str, Any]) -> Table:
    """Every JobSink and its Jobs of the last day."""
    table = _table("jobs", "sink", "waiting", "running", "done", "failed")
    for name, jobs in status["jobs"].items():
        table.add_row(name, *(str(jobs[key]) for key in ("waiting", "running", "done", "failed")))
    return table


def event_table(events: Iterable[Mapping[str, Any]]) -> Table:
    """Every delivery, oldest first."""
    table = _table("events", "accepted", "trigger", "state", "code", "failures", "took")
    for name in ("type", "subject", "id"):
        table.add_column(name, overflow="fold")
    for event in events:
        moment = time.strftime("%H:%M:%S", time.localtime(event["accepted"]))
        table.add_row(
            moment,
            event["trigger"] or "nobody",
            event["state"] or "",
            "" if event["code"] is None else str(event["code"]),
            str(event["failures"]),
            _seconds(span(event, "started", "finished")),
            *(escape(event[name] or "") for name in ("type", "subject", "id")),
        )
    return table


def wake_table(status: Mapping[str, Any], since: float) -> Table:
    """Every function since a moment: how long it took to wake, how long it worked, and that it sleeps again."""
    table = Table(title="functions", title_justify="left")
    for name in ("function", "woke in", "worked", "requests", "slept again after"):
        table.add_column(name, justify="left" if name == "function" else "right")
    for name, service in status["services"].items():
        wakes = [wake for wake in service["wakes"] if wake["created"] >= since and wake["ready"]]
        if not wakes:
            table.add_row(name, "stayed asleep", "", "", "")
            continue
        ends = [wake["stopped"] for wake in wakes]
        table.add_row(
            name,
            " + ".join(_seconds(span(wake, "created", "ready")) for wake in wakes),
            _seconds(sum(wake["busy"] for wake in wakes)),
            str(sum(wake["requests"] for wake in wakes)),
            "still awake" if None in ends else _seconds(max(ends) - wakes[0]["created"]),
        )
    return table


def span(facts: Mapping[str, Any], start: str, end: str) -> float | None:
    """Seconds between two moments, None while one of them is not there."""
    if facts.get(start) is None or facts.get(end) is None:
        return None
    return float(facts[end] - facts[start])


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for name in columns:
        table.add_column(name, no_wrap=True)
    return table


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


def _ago(moment: float | None) -> str:
    return "never" if moment is None else f"{time.time() - moment:.0f} s ago"


def _coloured(state: str) -> str:
    colour = {"awake": "green", "waking": "yellow"}.get(state, "dim")
    return f"[{colour}]{state}[/]"

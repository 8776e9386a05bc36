"""The event of one segment is lost for good: the clock asks for that segment again, and for no other."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.local.film import RATE, moving, pictures
from tests.local.machine import Machine
from tests.local.test_video import FACE, drop, finished, folder, works

SECONDS = 3
"""As many segments."""
LOST, METRIC = 1, "wakeswap_segments_asked_again_total"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def restless(docs: list[dict[str, Any]]) -> None:
    """A clock that ticks all the time, and as little patience as may be."""
    for doc in docs:
        if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
            doc["data"] |= {"WAKESWAP_SEGMENT_SECONDS": "1", "WAKESWAP_STALLED_SECONDS": "60"}
        if doc["kind"] == "PingSource" and doc["metadata"]["name"] == "waiting":
            doc["spec"]["schedule"] = "*/3 * * * * *"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    one = Machine(tmp_path, restless, idle=20)
    yield one
    one.down()


def test_an_event_that_is_lost_for_good_is_asked_for_again_and_no_other(machine: Machine, tmp_path: Path) -> None:
    clip = moving(tmp_path / "clip.mp4", FACE / "one_face.jpg", SECONDS)
    machine.up()
    drop(machine, clip)
    machine.until(lambda: [index for index, _ in segments(machine, "split")] == [*range(SECONDS)], 120)
    machine.kill()
    lose(machine, LOST)
    machine.up()
    machine.until(lambda: done(machine) == {*range(SECONDS)} - {LOST} and not under_way(machine), 240)
    assert machine.outcomes() == {}
    grow_old(machine)
    told: list[float] = []

    def ended() -> bool:
        told.append(asked_again(machine))
        return len(machine.outcomes()) == 1

    machine.until(ended, 240)
    assert max(told) == 1
    result, path = finished(machine)
    assert result["frames"] == SECONDS * RATE
    assert [at for at, _ in pictures(path)] == [at for at, _ in pictures(clip)]
    machine.until(lambda: not under_way(machine), 120)
    assert [index for index, _ in segments(machine, "intake")] == [LOST]
    assert works(machine, "publish") == 1
    ends = [event["type"] for event in machine.admin("/events") if event["trigger"] == "wakeswap/meter"]
    assert ends == ["dev.wakeswap.publish.completed.v1"]


def rows(machine: Machine, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(machine.state / "broker.sqlite", timeout=60)) as broker:
        found = broker.execute(query).fetchall()
        broker.commit()
        return found


def segments(machine: Machine, stage: str) -> list[tuple[int, str]]:
    """Segments that a stage asked for, with the ids of the events, by index."""
    if not (machine.state / "broker.sqlite").exists():
        return []
    wanted = f"SELECT data, id FROM events WHERE type = 'dev.wakeswap.{stage}.completed.v1'"
    events = [(json.loads(data), name) for data, name in rows(machine, wanted)]
    return sorted((data["index"], name) for data, name in events if "index" in data)


def under_way(machine: Machine) -> list[tuple[int, int]]:
    """Deliveries of events about segments that are not at their end, and the segments."""
    open_ = "SELECT d.seq, e.data FROM deliveries d JOIN events e ON e.seq = d.event WHERE d.finished IS NULL"
    events = [(seq, json.loads(data or b"{}")) for seq, data in rows(machine, open_)]
    return [(seq, data["index"]) for seq, data in events if isinstance(data, dict) and "index" in data]


def lose(machine: Machine, index: int) -> None:
    """What the broker still had to deliver about a segment, while nobody has its file."""
    lost = [seq for seq, segment in under_way(machine) if segment == index]
    assert lost
    for seq in lost:
        rows(machine, f"DELETE FROM deliveries WHERE seq = {seq}")


def done(machine: Machine) -> set[int]:
    return {int(path.name.split(".")[1]) for path in (folder(machine) / "assemble").glob("clip.*.json")}


def grow_old(machine: Machine) -> None:
    """As if nobody had worked on the job for longer than the clock is patient."""
    for path in folder(machine).rglob("*"):
        os.utime(path, (time.time() - 120,) * 2)


def asked_again(machine: Machine) -> float:
    """What intake's process shows to Prometheus; 0 while it starts."""
    try:
        with urllib.request.urlopen(machine.facts()["services"]["intake"] + "/metrics", timeout=60) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
    except urllib.error.HTTPError as error:
        with error:
            return 0
    values = [sample.value for family in families for sample in family.samples if sample.name == METRIC]
    return sum(values)

"""What went lost of a video is asked for again by the clock: late enough, under new ids, while somebody waits."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import pytest

from shared.events.contract import first
from shared.events.payloads import ObjectRef, Segment
from shared.jobs import film, stalled
from shared.jobs.film import Film
from shared.jobs.records import CANCELLED, JSON, OUTCOME, JobRecord, create
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.scoped import TenantStore
from tests.unit.jobs.film import JOB, REQUEST, clip, plan
from tests.unit.jobs.world import World

MARK = f"system/videos/demo.{JOB}.json"
LONG = 1201.0


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A video of six segments, three at once, of which 0 and 2 are done."""
    made = World(LocalStore(tmp_path))
    create(made.store, "demo", JobRecord(REQUEST))
    split = TenantStore(made.store, "demo", JOB, film.SPLIT)
    stalled.watch(split, split.save(film.PLAN, film.closed_plan(plan(6, 3)), JSON))
    for index in (0, 2):
        Film(made.store, "demo", JOB).take(plan(6, 3), clip(index), f"cause-{index}")
    return made


def asked(world: World, seconds: float) -> list[tuple[int, str]]:
    """Segments that the clock asks for so long after the last work, and what their ids come from."""
    world.time = time.time() + seconds
    accepted = list(stalled.ask_again(world))
    segments = [entry.payload for entry in accepted]
    assert all(isinstance(one, Segment) for one in segments)
    return [(one.index, entry.cause) for entry in accepted if isinstance(one := entry.payload, Segment)]


def test_nothing_is_asked_for_while_somebody_works(world: World) -> None:
    assert asked(world, 1100) == []


def test_what_is_missing_is_asked_for_later_each_time_under_another_id(world: World) -> None:
    again = [(index, f"{JOB}.{index}.0") for index in (1, 3, 5)]
    assert asked(world, LONG) == again
    assert asked(world, LONG) == []
    assert asked(world, 2 * LONG) == [(index, f"{JOB}.{index}.1") for index in (1, 3, 5)]


def test_what_is_asked_for_is_the_segment_as_split_made_it(world: World) -> None:
    world.time = time.time() + LONG
    segment = next(stalled.ask_again(world)).payload
    assert isinstance(segment, Segment)
    assert (segment.job, segment.request) == (JOB, REQUEST)
    data = TenantStore(world.store, "demo", JOB, "detect").load(segment.plan)
    assert film.open_plan(data) == plan(6, 3)
    assert first("intake", "demo", segment, "x").extensions["media"] == "segment"


def test_a_crash_before_the_mark_is_written_asks_for_the_same_again(world: World) -> None:
    world.time = time.time() + LONG
    before = next(stalled.ask_again(world))
    assert next(stalled.ask_again(world)) == before


def test_where_nobody_joins_one_segment_is_done_again_and_joins(world: World) -> None:
    records = Film(world.store, "demo", JOB)
    for index in (1, 3, 4, 5):
        records.take(plan(6, 3), clip(index), f"cause-{index}")
    assert records.take(plan(6, 3), clip(5), "cause-5") is None, "and is never heard of again"
    assert [index for index, _ in asked(world, LONG)] == [0]
    assert records.take(plan(6, 3), clip(0), "asked again") is None


@pytest.mark.parametrize("name", [OUTCOME, CANCELLED])
def test_of_a_job_that_is_over_only_the_mark_goes(world: World, name: str) -> None:
    world.store.put(keys.job("demo", JOB, name), b"{}")
    assert asked(world, LONG) == []
    assert [entry.key for entry in world.store.list("system/videos/").objects] == []


def test_a_job_that_waits_for_a_person_is_left_alone(world: World) -> None:
    world.store.put(keys.job("demo", JOB, "detect", "hold.0123456789ab.json"), b"{}")
    assert asked(world, LONG) == []
    assert world.store.head(MARK)


def test_a_plan_that_is_gone_stops_nobody_else(world: World) -> None:
    world.store.delete(keys.job("demo", JOB, film.SPLIT, film.PLAN))
    other = json.loads(world.store.get(MARK)[0])
    world.store.put("system/videos/demo.job-00000000.json", json.dumps({**other, "job": "../x"}).encode())
    world.store.put("system/videos/demo.job-00000002.json", b"damaged")
    assert asked(world, LONG) == []
    assert [entry.key for entry in world.store.list("system/videos/").objects] == [MARK]


def test_a_mark_is_written_once(world: World) -> None:
    other = ObjectRef("tenants/demo/jobs/x", hashlib.sha256(b"").hexdigest(), 0, JSON)
    before = world.store.get(MARK)[0]
    stalled.watch(TenantStore(world.store, "demo", JOB, film.SPLIT), other)
    assert world.store.get(MARK)[0] == before

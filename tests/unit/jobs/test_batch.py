"""COLD-07 and the clock's door: one batch per source and minute, resumable, and no item twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from shared.errors import BusyError, DeadlineExceededError, RequestError, TransientError
from shared.events.event import Event
from shared.jobs import batch, line
from shared.jobs.accepted import Accepted
from shared.tenancy.directory import load
from tests.unit.jobs.world import World, drain, event_file, jobs, picture, ping, rejections

PAGE = 6
NIGHTLY = "tenants/demo/inbox/nightly/"


def fill(world: World, count: int, start: int = 0) -> None:
    for index in range(start, start + count):
        folder = f"{NIGHTLY}{index:03}/"
        world.put(folder + "source.jpg", picture(index % 200, 16))
        world.put(folder + "target.jpg", picture(index % 200 + 1, 16))


@pytest.fixture
def world(world: World) -> World:
    """With room for all jobs of a batch at once."""
    world.tenants = load('{"demo": {"policy": {"max_concurrent": 99, "max_batch": 99}}}')
    return world


def run(world: World, event: Event) -> list[Accepted]:
    """The events of a batch up to the next strike of the clock."""
    return [*batch.run(event, world, page_size=PAGE), *line.tick(world)]


def test_every_unprocessed_item_once(world: World) -> None:
    fill(world, 3)
    done = world.upload(NIGHTLY + "001/source.jpg")
    world.put("tenants/demo/inbox/other/source.jpg")
    world.put("tenants/demo/inbox/other/target.jpg")
    made = jobs(run(world, ping()))
    assert sorted(job.source[0].key for job in made) == [NIGHTLY + "000/source.jpg", NIGHTLY + "002/source.jpg"]
    assert {(job.origin, job.priority) for job in made} == {("batch", "batch")}
    assert not {job.job for job in made} & {entry.cause for entry in done}


def test_s3_06_a_sweep_finds_the_upload_whose_event_was_lost(world: World) -> None:
    fill(world, 2)
    told = jobs(world.upload(NIGHTLY + "000/target.jpg"))
    swept = jobs(run(world, ping()))
    assert [job.source[0].key for job in swept] == [NIGHTLY + "001/source.jpg"]
    late = jobs(world.upload(NIGHTLY + "001/target.jpg"))
    assert [job.job for job in late] == [job.job for job in swept], "the lost event, when it comes, makes no second job"
    assert told[0].job != late[0].job


def test_cold_07_one_batch_per_source_and_minute_whatever_the_id(world: World) -> None:
    fill(world, 2)
    assert len(run(world, ping(identity="e-1"))) == 2
    fill(world, 1, start=5)
    assert run(world, ping(identity="e-2")) == []
    assert len(run(world, ping("2026-01-03T03:04"))) == 1


def test_cold_07_offsets_of_one_moment_are_one_minute(world: World) -> None:
    fill(world, 1)
    assert len(run(world, ping("2026-01-02T03:04"))) == 1
    fill(world, 1, start=1)
    assert run(world, replace(ping(), time="2026-01-02T04:04:59+01:00")) == []


def test_cold_07_forty_sources_at_once(world: World) -> None:
    fill(world, 5)
    events = [replace(ping(), id=f"e-{n}", source=f"/apis/v1/namespaces/jobs/pingsources/{n}") for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        made = [job.job for accepted in pool.map(lambda event: run(world, event), events) for job in jobs(accepted)]
    assert len(made) == len(set(made)) == 5


def test_crash_in_the_middle_goes_on_from_there(world: World) -> None:
    fill(world, PAGE)  # two pages of objects and one in the second that is refused
    world.put(f"{NIGHTLY}{PAGE // 2 + 1:03}.job.json", b"{}")
    early = batch.run(ping(), world, page_size=PAGE)
    refused = next(early)
    del early  # kill -9: the second page is begun, its place is not noted
    assert len(world.store.list("system/line/batch/demo/").objects) == PAGE // 2 + 1
    after = run(world, ping())
    assert after[0] == refused
    assert len({job.job for job in jobs(after)}) == len(jobs(after)) == PAGE
    assert run(world, ping()) == []


def test_refusal_that_was_recorded_but_not_published_is_published_on_resume(world: World) -> None:
    world.put(NIGHTLY + "bad.job.json", b"{}")
    early = batch.run(ping(), world, page_size=PAGE)
    lost = next(early)
    del early
    world.put(f"tenants/demo/jobs/{lost.cause}/outcome.json", b"{}")  # the crash came between this and the broker
    assert run(world, ping()) == [lost]


def test_time_is_up_and_the_repeat_goes_on(world: World) -> None:
    fill(world, PAGE)
    world.steps.left = PAGE + 2
    seen: list[Accepted] = []
    with pytest.raises(DeadlineExceededError):
        drain(batch.run(ping(), world, page_size=PAGE), seen)
    assert (len(seen), len(world.store.list("system/line/batch/demo/").objects)) == (0, PAGE // 2 + 1)
    world.steps.left = 1_000_000
    assert len({entry.cause for entry in run(world, ping())}) == PAGE


@pytest.mark.parametrize("damage", [b"", b"\x00" * 20, b"{}"])
def test_place_that_cannot_be_read_begins_anew(world: World, damage: bytes) -> None:
    fill(world, 3)
    made = [entry.cause for entry in run(world, ping())]
    (place,) = world.store.list("system/batch/").objects
    world.store.put(place.key, damage)
    assert run(world, ping()) == [], "they are under way"
    assert len(world.store.list("tenants/demo/jobs/", delimiter="/").prefixes) == len(made) == 3


def test_two_processes_at_one_batch(world: World) -> None:
    fill(world, 5)
    world.put(NIGHTLY + "000.job.json", b"{}")
    first, second = batch.run(ping(), world, page_size=PAGE), batch.run(ping(identity="e-2"), world, page_size=PAGE)
    assert next(first) == next(second)
    assert list(second) == []
    with pytest.raises(BusyError):
        list(first)
    assert len(list(line.tick(world))) == 5
    assert issubclass(BusyError, TransientError)


def test_refused_items_are_refused_once(world: World) -> None:
    world.put(NIGHTLY + "bad.job.json", b"{}")
    (first,) = run(world, ping())
    assert [entry.code for entry in rejections([first])] == ["invalid_manifest"]
    world.put(f"tenants/demo/jobs/{first.cause}/outcome.json", b"{}")  # the harness wrote it when it published
    assert run(world, ping("2026-01-03T03:04")) == []


def test_own_objects_are_no_items(world: World) -> None:
    fill(world, 1)
    world.put(NIGHTLY + "000/source.jpg", picture(3), metadata={"wakeswap-job": "job-1"})
    world.put(NIGHTLY + "000/target.jpg", picture(4), metadata={"wakeswap-job": "job-1"})
    assert run(world, ping()) == []


@pytest.mark.parametrize(
    "data", [{"tenant": "nobody"}, {"prefix": "../../acme/inbox/"}, {"prefix": "tenants/../x"}, {"tenant": "../acme"}]
)
def test_bad_requests_go_to_dead_letter_at_once(world: World, data: dict[str, str]) -> None:
    with pytest.raises(RequestError) as caught:
        run(world, ping(**data))
    assert caught.value.status == 400


def test_cold_07_case_file_names_no_tenant(world: World) -> None:
    case = event_file("ce_ping.json")
    event = Event(str(case["id"]), str(case["source"]), str(case["type"]), time=str(case["time"]), data=case["data"])
    with pytest.raises(RequestError) as caught:
        run(world, event)
    assert caught.value.context == {"field": "tenant"}


def test_whole_inbox(world: World) -> None:
    fill(world, 1)
    assert len(run(world, ping(prefix=""))) == 1

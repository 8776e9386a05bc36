"""The line of waiting jobs: order, fairness, every crash between two steps, and the spread of batches (COLD-07)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from shared.events.event import Event
from shared.events.payloads import Rejection
from shared.jobs import batch, line, records, slots, views
from shared.jobs.accepted import Accepted
from shared.serving.outcome import Outcomes
from shared.tenancy.directory import load
from tests.unit.jobs.world import World, event_file, jobs, picture, ping

LINE = "system/line/"


def limits(world: World, *names: str, **policy: int) -> None:
    world.tenants = load(json.dumps({name: {"policy": policy} for name in names or ("demo",)}))


def upload(world: World, name: str, tenant: str = "demo") -> list[Accepted]:
    """A pair of pictures, told of once; a second later than the one before."""
    world.time += 1
    folder = f"tenants/{tenant}/inbox/{name}/"
    world.put(folder + "source.jpg", picture(1, 16))
    world.put(folder + "target.jpg", picture(2, 16))
    return world.upload(folder + "target.jpg")


def names(accepted: list[Accepted]) -> list[str]:
    return [job.target.key.split("/")[3] for job in jobs(accepted)]


def end(world: World, accepted: Accepted, *, told: bool = True) -> list[Accepted]:
    """The job ends as the harness ends it; what starts when intake hears of it."""
    job = accepted.payload.job
    assert Outcomes(world.store, "swap").settle(accepted.tenant, Rejection(job, "swap", "x", "y", 422), "c")
    return list(line.ended(world, accepted.tenant, job)) if told else []


def waiting(world: World) -> list[str]:
    return [entry.key for entry in world.store.list(LINE).objects]


def status(world: World, job: str, tenant: str = "demo") -> str:
    return views.view(world.store, tenant, job).status


def test_uploads_over_quota_wait_in_order_and_begin_as_slots_get_free(world: World) -> None:
    limits(world, max_concurrent=2)
    begun = [*upload(world, "a"), *upload(world, "b"), *upload(world, "c"), *upload(world, "d"), *upload(world, "e")]
    assert names(begun) == ["a", "b"]
    assert len(waiting(world)) == 3
    assert world.counted.counts["jobs_queued.max_concurrent.shared"] == 1, "the others stand behind one that waits"
    (third,) = end(world, begun[1])
    assert names([third]) == ["c"]
    assert end(world, begun[1]) == [], "an end told twice frees one slot"
    (fourth,) = end(world, begun[0])
    (fifth,) = end(world, third)
    assert names([fourth, fifth]) == ["d", "e"]
    assert waiting(world) == []


def test_a_waiting_job_is_shown_listed_and_can_be_cancelled(world: World) -> None:
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    assert [upload(world, "b"), upload(world, "c")] == [[], []]
    second, third = (key.rpartition(".json")[0].rpartition(".")[2] for key in waiting(world))
    assert [status(world, job) for job in (first.cause, second, third)] == ["queued", "waiting", "waiting"]
    assert {view.id for view in views.listing(world.store, "demo", status="waiting").jobs} == {second, third}
    records.cancel(world.store, "demo", second, world.now())
    line.withdraw(world.store, "demo", second)
    assert status(world, second) == "cancelled"
    assert [entry.cause for entry in end(world, first)] == [third]
    assert (status(world, third), waiting(world)) == ("queued", [])


def test_a_job_that_was_cancelled_without_leaving_the_line_is_passed_over(world: World) -> None:
    """A crash came between the two."""
    limits(world, max_concurrent=1, jobs_per_day=2)
    (first,) = upload(world, "a")
    upload(world, "b"), upload(world, "c")
    records.cancel(world.store, "demo", waiting(world)[0].split(".")[-2], world.now())
    assert names(end(world, first)) == ["c"], "and it is not counted"
    assert waiting(world) == []


def test_an_upload_that_is_told_again_waits_once_and_runs_once(world: World) -> None:
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    upload(world, "b")
    again = world.upload("tenants/demo/inbox/b/source.jpg")
    assert (again, len(waiting(world))) == ([], 1)
    assert world.upload("tenants/demo/inbox/a/source.jpg") == [first], "the same event again, though others wait"
    (second,) = end(world, first)
    assert world.upload("tenants/demo/inbox/b/source.jpg") == [second]
    assert end(world, second) == []
    assert world.upload("tenants/demo/inbox/b/source.jpg") == [], "it is over"
    assert not slots.holds(world.store, "demo", second.cause)


def test_nobody_overtakes(world: World) -> None:
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    upload(world, "b")
    end(world, first, told=False)
    assert names(upload(world, "c")) == ["b"], "the slot is free, and b came before"
    assert len(waiting(world)) == 1


def test_interactive_before_batch_and_batches_have_their_own_limit(world: World) -> None:
    limits(world, max_concurrent=2, max_batch=1)
    for name in ("1", "2", "3"):
        world.put(f"tenants/demo/inbox/nightly/{name}/source.jpg", picture(1, 16))
        world.put(f"tenants/demo/inbox/nightly/{name}/target.jpg", picture(2, 16))
    assert list(batch.run(ping(), world)) == []
    (item,) = line.tick(world)
    assert list(line.tick(world)) == [], "one slot is left, and it is not for batches"
    (a,) = upload(world, "a")
    assert upload(world, "b") == []
    (b,) = end(world, item)
    assert names([b]) == ["b"]
    assert end(world, a)[0].payload.job != b.cause, "only then the batch goes on"
    assert len(waiting(world)) == 1


def test_sec_07_batches_count_per_picture_and_what_is_told_twice_counts_once(world: World) -> None:
    limits(world, max_concurrent=5, max_batch=5, jobs_per_day=3)
    for name in ("1", "2", "3", "4"):
        world.put(f"tenants/demo/inbox/nightly/{name}/source.jpg", picture(1, 16))
        world.put(f"tenants/demo/inbox/nightly/{name}/target.jpg", picture(2, 16))
    for _ in range(2):
        assert list(batch.run(ping(), world)) == []
    assert len(list(line.tick(world))) == 3
    for name in ("1", "2", "3", "4"):
        world.upload(f"tenants/demo/inbox/nightly/{name}/target.jpg")
    assert list(line.tick(world)) == []
    assert len(waiting(world)) == 1
    world.time += 86_400
    assert len(list(line.tick(world))) == 1


def test_tenants_are_served_in_turn(world: World) -> None:
    limits(world, "acme", "demo", max_concurrent=2)
    held = [upload(world, name, tenant)[0] for tenant in ("acme", "demo") for name in ("x", "y")]
    for name in ("a", "b", "c"):
        upload(world, name, "acme"), upload(world, name, "demo")
    for one in held:
        end(world, one, told=False)
    begun = list(line.tick(world))
    assert [(entry.tenant, name) for entry, name in zip(begun, names(begun), strict=True)] == [
        ("acme", "a"), ("demo", "a"), ("acme", "b"), ("demo", "b"),
    ]  # fmt: skip


def test_a_tenant_that_is_no_more_loses_nothing_and_holds_up_nobody(world: World) -> None:
    limits(world, "acme", "demo", max_concurrent=1)
    held = [upload(world, "x", tenant)[0] for tenant in ("acme", "demo")]
    upload(world, "a", "acme"), upload(world, "a", "demo")
    for one in held:
        end(world, one, told=False)
    limits(world, "demo", max_concurrent=1)
    assert [entry.tenant for entry in line.tick(world)] == ["demo"]
    assert list(line.ended(world, "acme", held[0].cause)) == []
    assert list(line.ended(world, "demo", "../x")) == []
    limits(world, "acme", max_concurrent=1)
    assert [entry.tenant for entry in line.tick(world)] == ["acme"]


def test_a_tenant_whose_file_cannot_be_used_loses_nothing_and_holds_up_nobody(world: World, tmp_path: Path) -> None:
    limits(world, "acme", "demo", max_concurrent=1)
    held = [upload(world, "x", tenant)[0] for tenant in ("acme", "demo")]
    upload(world, "a", "acme"), upload(world, "a", "demo")
    for one in held:
        end(world, one, told=False)
    (tmp_path / "acme.yaml").write_text("policy: [")
    (tmp_path / "demo.yaml").write_text("{}")
    world.tenants = load("", folder=str(tmp_path))
    assert [entry.tenant for entry in line.tick(world)] == ["demo"]
    (tmp_path / "acme.yaml").write_text("{}")
    world.tenants = load("", folder=str(tmp_path))
    assert [entry.tenant for entry in line.tick(world)] == ["acme"]


def test_what_is_no_waiting_job_holds_up_nobody(world: World) -> None:
    """Somebody's editor or file manager was in the folder."""
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    upload(world, "b")
    for name in ("0.bad name.json", "0..json", "0"):
        world.put(f"{LINE}interactive/demo/{name}", b"{")
    world.put(f"{LINE}interactive/Not a tenant/0.x.json", b"{")
    end(world, first, told=False)
    assert names(list(line.tick(world))) == ["b"]
    assert waiting(world) == [f"{LINE}interactive/Not a tenant/0.x.json"]


def test_a_new_minute_starts_what_the_last_one_had_no_room_for(world: World) -> None:
    limits(world, max_concurrent=9, jobs_per_minute=2)
    world.time -= world.time % 60
    assert [names(upload(world, name)) for name in "abc"] == [["a"], ["b"], []]
    assert list(line.tick(world)) == []
    world.time += 60
    assert names(list(line.tick(world))) == ["c"]


def test_sec_07_a_crashed_jobs_slot_returns_when_its_lease_ends(world: World) -> None:
    limits(world, max_concurrent=1)
    upload(world, "a")
    upload(world, "b"), upload(world, "c")
    assert list(line.tick(world)) == []
    world.time += world.slot_seconds
    assert names(list(line.tick(world))) == ["b"]
    assert list(line.tick(world)) == []


def crash(entries: Iterator[Accepted]) -> Accepted:
    """kill -9 while the first event is published: the generator never goes on."""
    accepted = next(entries)
    entries.close()  # type: ignore[attr-defined]
    return accepted


def test_crash_between_slot_and_event(world: World) -> None:
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    upload(world, "b"), upload(world, "c")
    end(world, first, told=False)
    lost = crash(line.ended(world, "demo", first.cause))
    assert list(line.tick(world)) == [], "whoever took the slot may be about to publish it"
    assert names(list(line.tick(later(world)))) == ["b"]
    assert lost.cause not in "".join(waiting(world))
    assert len(waiting(world)) == 1


def later(world: World) -> World:
    world.time += line.STARTING_SECONDS
    return world


def test_crash_after_the_event_repeats_it_under_the_same_cause_or_drops_what_is_over(world: World) -> None:
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    upload(world, "b"), upload(world, "c")
    end(world, first, told=False)
    published = crash(line.ended(world, "demo", first.cause))
    (again,) = line.tick(later(world))
    assert again == published
    upload(world, "d")
    (third,) = end(world, again)
    place = waiting(world)[0]
    kept = world.store.get(place)[0]
    (fourth,) = end(world, third)
    world.store.put(place, kept)  # its place was not deleted before the crash, and it has ended since
    assert end(world, fourth) == []
    assert (waiting(world), slots.holds(world.store, "demo", fourth.cause)) == ([], False)


def test_crash_between_the_end_and_its_slot(world: World) -> None:
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    upload(world, "b")
    end_record = f"tenants/demo/jobs/{first.cause}/outcome.json"
    world.store.put(end_record, b"{}")
    assert names(list(line.ended(world, "demo", first.cause))) == ["b"]


def test_crash_between_record_and_place(world: World) -> None:
    """The job is on record, its upload will be told again."""
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    upload(world, "b")
    (place,) = waiting(world)
    world.store.delete(place)
    assert world.upload("tenants/demo/inbox/b/target.jpg") == []
    assert waiting(world) == [place]
    assert names(end(world, first)) == ["b"]


@pytest.mark.parametrize("damage", [b"", b"\x00\x00", b"[]"])
def test_a_place_that_cannot_be_read_is_read_from_the_jobs_own_record(world: World, damage: bytes) -> None:
    limits(world, max_concurrent=1)
    (first,) = upload(world, "a")
    upload(world, "b"), upload(world, "c")
    for place in waiting(world):
        world.store.put(place, damage)
    lost = waiting(world)[0].split(".")[-2]
    world.store.put(f"tenants/demo/jobs/{lost}/job.json", damage)
    assert names(end(world, first)) == ["c"], "and what nobody can read blocks nobody"
    assert waiting(world) == []


def forty(world: World) -> list[Event]:
    """The case's event from forty sources in one second, each for a tenant of its own with three pairs."""
    tenants = [f"t{number}" for number in range(40)]
    limits(world, *tenants)
    case, events = event_file("ce_ping.json"), []
    for number, tenant in enumerate(tenants):
        for name in ("1", "2", "3"):
            world.put(f"tenants/{tenant}/inbox/{name}/source.jpg", picture(1, 16))
            world.put(f"tenants/{tenant}/inbox/{name}/target.jpg", picture(2, 16))
        source = f"{case['source']}-{number}"
        events.append(Event(case["id"], source, case["type"], time=case["time"], data={"tenant": tenant}))
    return events


def test_cold_07_batches_of_forty_tenants_are_spread_and_within_their_quotas(world: World) -> None:
    world.spread = 60.0
    for event in forty(world):
        assert list(batch.run(event, world)) == []
        assert list(batch.run(replace(event, id="another"), world)) == [], "the same minute again"
    begun = list(line.tick(world))
    assert sorted(entry.tenant for entry in begun) == sorted(f"t{number}" for number in range(40))
    assert world.pauses == [1.5] * 39
    assert sum(world.pauses) < 60
    assert list(line.tick(world)) == [], "each has one job under way, as its policy says"
    assert len(end(world, begun[0])) == 1
    assert len(waiting(world)) == 3 * 40 - 41


def test_cold_07_a_tenant_alone_does_not_wait_and_the_order_changes_every_minute(world: World) -> None:
    world.spread = 60.0
    events = forty(world)
    list(batch.run(events[0], world))
    assert len(list(line.tick(world))) == 1
    assert world.pauses == []
    for event in events[1:]:
        list(batch.run(event, world))
    first = line._shuffled("t1", world.time) < line._shuffled("t2", world.time)
    assert {
        line._shuffled("t1", world.time + 60 * n) < line._shuffled("t2", world.time + 60 * n) for n in range(20)
    } == {
        first,
        not first,
    }


def test_a_process_that_has_to_end_leaves_the_rest_to_the_next_tick(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.spread = 60.0
    for event in forty(world):
        list(batch.run(event, world))
    with monkeypatch.context() as patch:
        patch.setattr(world, "pause", lambda seconds: False)
        assert len(list(line.tick(world))) == 1
    assert len(list(line.tick(world))) == 39


def test_cold_07_a_batch_begins_without_the_clock_and_one_thread_paces_for_all(world: World) -> None:
    world.spread = 60.0
    first, *others = forty(world)
    list(batch.run(first, world))
    pacing = line.pace(world)
    assert next(pacing).tenant == "t0"
    for event in others:  # the clocks of other tenants strike while the first is on its way
        list(batch.run(event, world))
        assert list(line.pace(world)) == []
    assert {entry.tenant for entry in pacing} == {f"t{number}" for number in range(1, 40)}
    assert sum(world.pauses) < 60
    assert list(line.pace(world)) == []


def test_pacing_that_breaks_off_is_taken_up_by_the_next(world: World) -> None:
    first, second, *_ = forty(world)
    list(batch.run(first, world))
    pacing = line.pace(world)
    next(pacing)
    pacing.close()  # the broker could not be reached
    list(batch.run(second, world))
    assert [entry.tenant for entry in line.pace(world)] == ["t1"]


def test_a_process_tells_how_many_wait_as_jobs_end_but_not_each_time() -> None:
    pace = line._Pace()
    assert [pace.may_look(now) for now in (100.0, 101.0, 129.9, 130.0, 131.0, 50.0)] == [
        True, False, False, True, False, True,
    ]  # fmt: skip

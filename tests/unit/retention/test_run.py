"""A run deletes what is due and nothing else; what it did is on record once, whatever crashes and however many run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from shared.errors import BrokerUnavailableError
from shared.jobs import line
from shared.storage import keys
from shared.storage.local import LocalStore
from tests.unit.retention.world import HOUR, World

HTTP, UPLOAD, YOUNG, RUNNING = "job-of-http-1", "job-of-upload-1", "job-ended-now", "job-under-way"


def filled(root: Path, *, all_ended: bool = False) -> World:
    world = World(root)
    world.job(HTTP, 40, ended=30)
    world.job(UPLOAD, 40, ended=30, upload="anna")
    world.job(YOUNG, 40, ended=2, upload="berta")
    if not all_ended:
        world.job(RUNNING, 40, upload="carl")
    for key in ("tenants/demo/templates/t/target.jpg", "tenants/acme/inbox/a.jpg", "tenants/demo/usage/2026-01/x.json"):
        world.put(key, age=9000)
    return world


def deleted(world: World) -> Counter[tuple[str, str]]:
    return Counter((str(one["job"]), str(one["code"])) for one in world.lines() if one["what"] == "retention")


def test_what_is_due_goes_and_everything_else_stays(tmp_path: Path) -> None:
    world = filled(tmp_path)
    before = world.names()
    report = world.run()
    gone = before - world.names()
    assert gone == {
        *(f"tenants/demo/jobs/{HTTP}/input/{role}-0" for role in ("source", "target")),
        *(f"tenants/demo/jobs/{job}/detect/landmarks.npz" for job in (HTTP, UPLOAD)),
        *(f"tenants/demo/inbox/anna/{role}.jpg" for role in ("source", "target")),
    }
    assert report.objects == {"inputs": 6}
    assert deleted(world) == {(HTTP, "inputs"): 1, (UPLOAD, "inputs"): 1}
    (one,) = [one for one in world.lines() if one["job"] == UPLOAD]
    facts = one["facts"]
    assert isinstance(facts, dict)
    assert (facts["objects"], len(facts["names"])) == (3, 3)
    assert "anna" not in str(world.lines()), "a name that a person gave stands nowhere in the audit"


def test_a_second_run_finds_nothing_and_writes_nothing(tmp_path: Path) -> None:
    world = filled(tmp_path)
    world.run()
    before = {key: world.store.head(key).etag for key in world.names()}
    assert world.run().objects == {}
    assert {key: world.store.head(key).etag for key in world.names()} == before


def test_when_the_result_is_due_nothing_of_the_job_is_left(tmp_path: Path) -> None:
    world = filled(tmp_path, all_ended=True)
    world.run()
    assert not world.prove(HTTP).holds
    world.now += 720 * HOUR
    world.run()
    for job in (HTTP, UPLOAD, YOUNG):
        assert not [key for key in world.names("tenants/") if job in key]
        assert world.prove(job).holds
    assert deleted(world)[(HTTP, "records")] == deleted(world)[(HTTP, "result")] == 1
    assert "tenants/demo/templates/t/target.jpg" in world.names()
    assert not world.names("system/retention/")


def test_a_dry_run_says_the_same_and_changes_nothing(tmp_path: Path) -> None:
    world = filled(tmp_path)
    before = world.names()
    said = world.run(dry=True).objects
    assert world.names() == before
    assert world.run().objects == said


def test_an_upload_stays_as_long_as_another_job_needs_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.job("job-first-1", 40, ended=30, upload="anna")
    world.job("job-second-1", 20, ended=2, upload="anna")
    world.run()
    assert len(world.names("tenants/demo/inbox/")) == 2
    world.now += 23 * HOUR
    world.run()
    assert not world.names("tenants/demo/inbox/")


def test_what_was_uploaded_again_under_the_same_name_is_another_upload(tmp_path: Path) -> None:
    world = World(tmp_path)
    job = world.job("job-first-1", 40, ended=30, upload="anna")
    again = world.put(keys.inbox("demo", "anna/source.jpg"), b"another", age=1)
    world.run()
    assert world.names("tenants/demo/inbox/") == {again}
    world.now += 700 * HOUR
    world.put(again, b"and another", age=1)
    world.run()
    assert world.prove(job).holds, "it is not the object that was deleted"
    assert again in world.names()


def test_uploads_that_no_job_took_go_when_no_queue_can_bring_them_any_more(tmp_path: Path) -> None:
    world = World(tmp_path)
    old = world.put(keys.inbox("demo", "half/source.jpg"), age=337)
    young = world.put(keys.inbox("demo", "half/target.jpg"), age=330)
    assert world.run().objects == {"uploads": 1}
    assert (old in world.names(), young in world.names()) == (False, True)


def test_what_a_request_left_that_came_to_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put(keys.job("demo", "job-cut-off-1", "input", "source-0"), age=25)
    world.put(keys.result("demo", "job-gone-long-ago.jpg"), age=721)
    young = world.put(keys.job("demo", "job-cut-off-2", "input", "source-0"), age=1)
    assert world.run().objects == {"stray": 2}
    assert world.data() == {young}


def test_a_job_that_nothing_moves_fails_once_and_is_told_of(tmp_path: Path) -> None:
    world = World(tmp_path)
    job = world.job("job-stuck-1", 340, upload="anna")
    assert world.run().objects == {"abandoned": 1}
    ((event,), names) = world.told, world.names()
    assert (event.type, event.subject) == ("dev.wakeswap.retention.failed.v1", job)
    assert keys.inbox("demo", "anna/source.jpg") in names, "its pictures are due after this end"
    assert world.run().objects == {}
    assert len(world.told) == 1
    world.now += 25 * HOUR
    assert world.run().objects == {"inputs": 3}


def test_a_job_whose_event_no_broker_takes_is_told_of_by_a_later_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.job("job-stuck-1", 340)
    endings, down = world.endings(), [True]

    def publish(event: Any) -> None:
        if down:
            raise BrokerUnavailableError
        world.told.append(event)

    failing = type(endings)(endings.store, endings.trail, endings.proof, publish, endings.hours)
    with pytest.raises(BrokerUnavailableError):
        failing.end("demo", "job-stuck-1")
    down.clear()
    world.run()
    assert [event.subject for event in world.told] == ["job-stuck-1"]
    assert len([one for one in world.lines() if one["decision"] == "failed"]) == 1


def test_a_job_that_ends_while_it_is_looked_at_is_not_ended_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.job("job-stuck-1", 340)
    world.end("job-stuck-1", 0)
    world.endings().end("demo", "job-stuck-1")
    assert not world.told


def test_places_in_the_line_that_lead_nowhere(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put(keys.waiting(line.BATCH, "demo", "2026-01-02T03:04:05Z", "job-gone-1"), b"{}", age=337)
    kept = world.put(keys.waiting(line.BATCH, "demo", "2026-01-02T03:04:05Z", "job-gone-2"), b"{}", age=1)
    assert world.run().objects == {"leftovers": 1}
    assert world.names("system/line/") == {kept}


class PowerCut(BaseException):
    """Nothing may catch it."""


def counting(monkeypatch: pytest.MonkeyPatch, left: list[int]) -> None:
    """Let so many changes of the store happen, then cut the power, before or after the change by turns."""
    for name in ("create", "put", "delete"):
        monkeypatch.setattr(LocalStore, name, _cut(getattr(LocalStore, name), left))


def _cut(real: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    def cut(*args: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == -1:
            raise PowerCut
        done = real(*args, **more)
        if left[0] == 0:
            left[0] -= 1
            raise PowerCut
        return done

    return cut


def test_the_power_may_go_at_every_single_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = filled(tmp_path / "reference", all_ended=True)
    reference.now += 720 * HOUR
    reference.run()
    expected = sorted(reference.names("tenants/")), deleted(reference)
    cuts = 0
    while True:
        world = filled(tmp_path / str(cuts), all_ended=True)
        world.now += 720 * HOUR
        with monkeypatch.context() as patch:
            counting(patch, [cuts])
            try:
                world.run()
                break
            except PowerCut:
                cuts += 1
        world.run()
        assert (sorted(world.names("tenants/")), deleted(world)) == expected, cuts
        objects = Counter({one["code"]: one["facts"]["objects"] for one in world.lines() if one["job"] == HTTP})  # type: ignore[index]
        assert objects == {"inputs": 3, "result": 1, "records": 3}, "the audit knows of all, also of the first half"
        assert not world.names("system/retention/")
    assert cuts > 30


def test_several_runs_at_once_delete_once_and_say_so_once(tmp_path: Path) -> None:
    world = filled(tmp_path, all_ended=True)
    world.now += 720 * HOUR
    world.put(keys.inbox("demo", "half/source.jpg"), age=337)
    stuck = world.job("job-stuck-1", 340)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: World(tmp_path, world.now, world.told).run(), range(6)))
    kinds = ("inputs", "result", "records")
    expected = {(job, kind): 1 for job in (HTTP, UPLOAD, YOUNG) for kind in kinds} | {("", "uploads"): 1}
    assert {(job, kind): count for (job, kind), count in deleted(world).items() if job != stuck} == expected
    assert len({event.id for event in world.told}) == 1, "a broker drops what comes twice"
    assert len([one for one in world.lines() if one["decision"] == "failed"]) == 1
    assert not world.names("system/retention/")

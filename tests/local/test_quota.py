"""Quota and fairness on the whole platform: real HTTP, real kills, a batch that must not stand before everybody."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.local.machine import Machine
from tests.local.test_pipeline import COMPLETED, FACE, drop, post

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
SMALL = FACE / "one_face.jpg"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    made: list[Machine] = []

    def make(*changes: Any, **options: Any) -> Machine:
        made.append(Machine(tmp_path, *changes, **options))
        made[-1].up()
        return made[-1]

    yield make
    for one in made:
        one.down()


def nobody_moderates(docs: list[dict[str, Any]]) -> None:
    """Jobs are taken in and never end."""
    docs[:] = [doc for doc in docs if not (doc["kind"] == "Trigger" and doc["metadata"]["name"] == "moderate")]


def usage(one: Machine, tenant: str = "demo") -> dict[str, Any]:
    path = one.objects / f"tenants/{tenant}/slots/usage.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"slots": []}
    return found


def at_once(one: Machine, count: int) -> list[tuple[int, Any]]:
    barrier = threading.Barrier(count)

    def send(_: int) -> tuple[int, Any]:
        barrier.wait()
        return post(one, SMALL, SMALL, "wait=0")

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(send, range(count)))


def test_sec_07_fifty_requests_at_once_on_a_quota_of_five(machine: Callable[..., Machine]) -> None:
    one = machine(nobody_moderates, tenants={"demo": {"policy": {"max_concurrent": 5}}})
    answers = at_once(one, 50)
    assert Counter(status for status, _ in answers) == {202: 5, 429: 45}
    assert {problem["code"] for status, problem in answers if status == 429} == {"quota_exceeded"}
    folders = {path.name for path in (one.objects / "tenants/demo/jobs").iterdir()}
    assert folders == {job["id"] for status, job in answers if status == 202}


def test_sec_07_a_job_whose_worker_is_killed_frees_its_slot_once(machine: Callable[..., Machine]) -> None:
    one = machine(tenants={"demo": {"policy": {"max_concurrent": 1}}})
    status, job = post(one, SMALL, FACE / "same_face_twice.jpg", "wait=0")
    assert status == 202
    assert post(one, SMALL, SMALL, "wait=0")[0] == 429
    one.until((one.objects / f"tenants/demo/jobs/{job['id']}/moderate").exists, 60)
    killed = sum(one.kill_one(random.Random(seed)) for seed in range(3))
    assert killed
    one.until(lambda: one.outcomes().get(job["id"], {}).get("type") == COMPLETED, 120)
    one.until(lambda: usage(one)["slots"] == [], 60)
    assert Counter(status for status, _ in at_once(one, 8)) == {202: 1, 429: 7}


def quick_clock(docs: list[dict[str, Any]]) -> None:
    """The nightly batches of two tenants are due now, and what waits is looked at every few seconds."""
    (nightly,) = [doc for doc in docs if doc["metadata"]["name"] == "demo-nightly"]
    (waiting,) = [doc for doc in docs if doc["kind"] == "PingSource" and doc["metadata"]["name"] == "waiting"]
    nightly["spec"]["schedule"] = waiting["spec"]["schedule"] = "*/5 * * * * *"
    other = json.loads(json.dumps(nightly))
    other["metadata"]["name"] = "acme-nightly"
    other["spec"]["data"] = '{"tenant": "acme", "prefix": "nightly/"}'
    docs.append(other)


def fill(one: Machine, tenant: str, count: int) -> None:
    folder = one.objects / f"tenants/{tenant}/inbox/nightly"
    folder.mkdir(parents=True)
    shutil.copy(SMALL, folder / "picture.jpg")
    for index in range(count):
        (folder / f".{index}").write_text('{"source": "picture.jpg", "target": "picture.jpg"}')


def reveal(one: Machine, tenant: str) -> None:
    """All items of the batch appear, and only the clock is told: notifications are for others to test."""
    for path in (one.objects / f"tenants/{tenant}/inbox/nightly").glob(".*"):
        path.rename(path.with_name(path.name[1:] + ".job.json"))


def ended(one: Machine, tenant: str) -> set[str]:
    return {path.parent.name for path in (one.objects / f"tenants/{tenant}/jobs").glob("*/outcome.json")}


def no_uploads(docs: list[dict[str, Any]]) -> None:
    docs[:] = [doc for doc in docs if doc["kind"] != "IntegrationSource"]


@pytest.mark.parametrize("owner", ["acme", "demo"])
def test_a_batch_delays_an_interactive_job_by_no_more_than_one_jobs_length(
    machine: Callable[..., Machine], owner: str
) -> None:
    """Another tenant's batch, and one's own: jobs are counted, not seconds."""
    one = machine(quick_clock, no_uploads, tenants={"demo": {}, "acme": {}})
    fill(one, owner, 60)
    reveal(one, owner)
    one.until(lambda: len(ended(one, owner)) >= 3, 240)
    for _ in range(5):
        before = ended(one, owner)
        status, job = post(one, SMALL, FACE / "same_face_twice.jpg")
        assert (status, job["status"]) == (200, "succeeded")
        meanwhile = ended(one, owner) - before - {job["id"]}
        assert len(meanwhile) <= 2
        assert len(usage(one, owner)["slots"]) <= 2
    assert len(ended(one, owner)) < 60, "the batch was under way all the time"
    assert [slot["batch"] for slot in usage(one, owner)["slots"]].count(True) <= 1


def test_uploads_over_quota_all_run_in_the_end_whoever_is_killed_meanwhile(machine: Callable[..., Machine]) -> None:
    """Functions, and twice everything: also between a slot taken and its event, or an end and the next beginning."""
    one, seed = machine(quick_clock, tenants={"demo": {"policy": {"max_concurrent": 4}}, "acme": {}}), random.Random(5)
    drop(one, 20)
    kills, cuts, deadline = 0, [4, 10], time.monotonic() + 420
    while len(one.outcomes()) < 20 and time.monotonic() < deadline:
        time.sleep(seed.uniform(0.5, 2))
        if 0 < len(one.outcomes()) < 16:
            kills += one.kill_one(seed)
        if cuts and len(one.outcomes()) >= cuts[0]:
            cuts.pop(0)
            one.kill()
            one.up()
        assert len(usage(one)["slots"]) <= 4
    assert (cuts, kills >= 2) == ([], True)
    assert Counter(end["type"] for end in one.outcomes().values()) == {COMPLETED: 20}
    one.until(lambda: usage(one)["slots"] == [], 60)
    assert not list(one.objects.glob("system/line/*/*/*"))

"""The whole pipeline under the local platform: every door, every end, crashes, duplicates, power cuts."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.local.machine import ROOT, Machine, Receiver

FACE = ROOT / "tests/data/face"
IMAGE = ROOT / "tests/data/image"
COMPLETED = "dev.wakeswap.publish.completed.v1"
pytestmark = pytest.mark.slow


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Machine]]:
    made: list[Machine] = []

    def make(*changes: Any, **options: Any) -> Machine:
        made.append(Machine(tmp_path, *changes, **options))
        return made[-1]

    yield make
    for one in made:
        one.down()


def drop(machine: Machine, count: int, start: int = 0) -> None:
    """`count` job manifests in the inbox, all about the same two small pictures."""
    folder = machine.inbox / "bulk"
    folder.mkdir(exist_ok=True)
    for name in ("one_face.jpg", "three_faces_small_mid_large.jpg"):
        if not (folder / name).exists():
            shutil.copy(FACE / name, folder / f".{name}")
            (folder / f".{name}").rename(folder / name)
    job = {"source": "one_face.jpg", "target": "three_faces_small_mid_large.jpg", "options": {"faces": "one"}}
    for index in range(start, start + count):
        (folder / f".{index}").write_text(json.dumps(job))
        (folder / f".{index}").rename(folder / f"{index}.job.json")


def post(machine: Machine, source: Path, target: Path, prefer: str = "wait=60", **headers: str) -> tuple[int, Any]:
    boundary = uuid.uuid4().hex
    body = b""
    for name, path in (("source", source), ("target", target)):
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{path.name}"\r\n\r\n'
        body += head.encode() + path.read_bytes() + b"\r\n"
    request = urllib.request.Request(
        machine.facts()["services"]["intake"] + "/v1/jobs",
        body + f"--{boundary}--\r\n".encode(),
        {"Content-Type": f"multipart/form-data; boundary={boundary}", "Authorization": f"Bearer {machine.key()}",
         "Prefer": prefer, **headers},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_functions_wake_for_an_upload_and_sleep_again(machine: Callable[..., Machine], receiver: Receiver) -> None:
    one = machine(tenants=receiver.tenants(), idle=2)
    one.up()
    one.until(one.asleep, 30)  # the clock of waiting jobs may strike just now
    drop(one, 1)
    one.until(lambda: len(one.outcomes()) == 1, 60)
    one.until(one.asleep, 30)
    woken = {name for name, service in one.admin("/status")["services"].items() if service["wakes"]}
    assert woken == {"intake", "moderate", "detect", "swap", "publish", "notify", "meter"}
    ((message, body),) = receiver.told
    (job,) = one.outcomes()
    assert message == f"{job}.completed"
    assert body["type"] == "job.completed"
    assert (one.objects / body["data"]["image"]["key"]).read_bytes().startswith(b"\xff\xd8")


def test_face_01_face_03_img_08_the_api_answers_with_the_picture_or_with_its_own_fault(
    machine: Callable[..., Machine],
) -> None:
    one = machine()
    one.up()
    status, job = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg")
    assert (status, job["status"]) == (200, "succeeded")
    assert len(job["result"]["faces"]) == 2
    for face in [*job["result"]["faces"], *job["result"]["source_faces"]]:
        assert face["score"] >= 0.5
        assert min(face["width"], face["height"]) >= 20
    assert [
        stage for stage in ("moderate", "detect", "swap", "publish") if stage not in json.dumps(job["stages"])
    ] == []
    refused = [
        (FACE / "no_face.png", FACE / "one_face.jpg", 422, "no_face_in_source"),
        (FACE / "one_face.jpg", FACE / "no_face.png", 422, "no_face_in_target"),
        (FACE / "source_two_faces.jpg", FACE / "one_face.jpg", 422, "ambiguous_source_face"),
        (FACE / "one_face.jpg", FACE / "tiny_face_17px.jpg", 422, "face_too_small"),
        (FACE / "one_face.jpg", IMAGE / "truncated_60pct.jpg", 422, "media_truncated"),
        (IMAGE / "truncated_50pct.png", FACE / "one_face.jpg", 422, "media_truncated"),
        (FACE / "one_face.jpg", IMAGE / "png_bad_crc.png", 422, "media_corrupt"),
        (FACE / "one_face.jpg", IMAGE / "svg_named.png", 415, "unsupported_media_type"),
        (IMAGE / "anim_3frames.gif", FACE / "one_face.jpg", 415, "animation_unsupported"),
        (FACE / "one_face.jpg", IMAGE / "bomb_20000x20000.png", 413, "image_too_large"),
    ]
    contexts = {}
    for source, target, status, code in refused:
        answer, problem = post(one, source, target)
        assert (answer, problem["code"]) == (status, code)
        contexts[code] = problem.get("context", {})
    assert contexts["ambiguous_source_face"]["faces"] == len(contexts["ambiguous_source_face"]["boxes"]) == 2
    assert 10 <= contexts["face_too_small"]["size"] <= 20
    # a repeat with the same key is the same job, not a second one
    keyed = {"Idempotency-Key": "order-7"}
    first = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg", **keyed)[1]
    again = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg", **keyed)[1]
    assert first["id"] == again["id"]
    assert Counter(end["type"] for end in one.outcomes().values()) == {
        COMPLETED: 2,
        "dev.wakeswap.detect.rejected.v1": 4,
        "dev.wakeswap.moderate.rejected.v1": 3,
    }
    assert len(list((one.objects / "tenants/demo/results").iterdir())) == 2
    one.until(one.asleep, 30)
    told_once(one)


def told_once(machine: Machine) -> None:
    """FACE-01, CE-06: a refused job's deliveries were all taken at the first try, and it has one rejected event."""
    rejected = [job for job, end in machine.outcomes().items() if end["type"].endswith(".rejected.v1")]
    history = machine.admin("/events?limit=1000")
    for job in rejected:
        deliveries = [entry for entry in history if entry["subject"] == job]
        assert {entry["state"] for entry in deliveries} == {"done"}
        assert {entry["failures"] for entry in deliveries} == {0}
        assert all(200 <= entry["code"] < 300 for entry in deliveries)
        assert len({entry["id"] for entry in deliveries if entry["type"].endswith(".rejected.v1")}) == 1


@pytest.mark.timeout(900)
def test_kill_9_of_functions_and_broker_loses_and_doubles_nothing(
    machine: Callable[..., Machine], receiver: Receiver
) -> None:
    tenants = receiver.tenants()
    tenants["demo"]["policy"] = {"max_concurrent": 1000, "jobs_per_minute": 1000}  # all 200 at once: more to lose
    one, jobs, seed = machine(tenants=tenants), 200, random.Random(7)
    one.up()
    drop(one, jobs)
    kills, cuts, last = 0, [jobs // 3, 2 * jobs // 3], time.monotonic()
    deadline = time.monotonic() + 800
    while len(one.outcomes()) < jobs and time.monotonic() < deadline:
        time.sleep(seed.uniform(0.2, 1.5))
        if len(one.outcomes()) < jobs * 0.9:  # the last ones are left alone to finish
            kills += one.kill_one(seed)
        if cuts and len(one.outcomes()) >= cuts[0]:
            cuts.pop(0)
            one.kill()
            one.up()
    assert time.monotonic() - last < 800
    ends = one.outcomes()
    assert Counter(end["type"] for end in ends.values()) == {COMPLETED: jobs}
    assert not cuts
    assert kills >= 20
    results = list((one.objects / "tenants/demo/results").iterdir())
    assert len(results) == jobs
    assert len({path.read_bytes() for path in results}) == 1  # the same two pictures: the same bytes, whoever died
    one.until(lambda: len({message for message, _ in receiver.told}) == jobs, 60)
    one.until(one.asleep, 60)


def thrice(docs: list[dict[str, Any]]) -> None:
    """Every Trigger three times: each event reaches each stage three times, at once and in any order."""
    for doc in [doc for doc in docs if doc["kind"] == "Trigger"]:
        for number in (2, 3):
            twin = deepcopy(doc)
            twin["metadata"]["name"] += f"-{number}"
            docs.append(twin)


@pytest.mark.timeout(300)
def test_ce_01_every_event_three_times_gives_one_result_and_one_notification(
    machine: Callable[..., Machine], receiver: Receiver
) -> None:
    one, jobs = machine(thrice, tenants=receiver.tenants()), 12
    one.up()
    drop(one, jobs)
    one.until(lambda: len(one.outcomes()) == jobs and one.asleep(), 240)
    assert Counter(end["type"] for end in one.outcomes().values()) == {COMPLETED: jobs}
    results = list((one.objects / "tenants/demo/results").iterdir())
    assert len(results) == jobs
    assert len({path.read_bytes() for path in results}) == 1
    assert sorted(message for message, _ in receiver.told) == sorted(f"{job}.completed" for job in one.outcomes())
    assert not [queue for queue in one.admin("/status")["queues"].values() if queue["dead"]]


@pytest.mark.timeout(300)
def test_a_power_cut_in_mid_job_is_finished_after_the_next_start(machine: Callable[..., Machine]) -> None:
    one = machine()
    one.up()
    drop(one, 3)
    one.until(lambda: any((one.objects / "tenants/demo/jobs").glob("*/detect/*")), 60)
    for process in [*one.processes()]:
        process.kill()
    one.kill()
    assert len(one.outcomes()) < 3
    one.up()
    one.until(lambda: len(one.outcomes()) == 3, 120)
    assert {end["type"] for end in one.outcomes().values()} == {COMPLETED}


@pytest.mark.timeout(300)
def test_a_dead_letter_fails_once_and_can_be_replayed(
    machine: Callable[..., Machine], receiver: Receiver, tmp_path: Path
) -> None:
    def impatient(docs: list[dict[str, Any]]) -> None:
        for doc in docs:
            if doc["kind"] == "Trigger" and "deadLetterSink" in doc["spec"]["delivery"]:
                doc["spec"]["delivery"] |= {"retry": 1, "backoffDelay": "PT0.1S"}

    models = tmp_path / "models"
    models.write_text("a file where the model cache should be: every init step fails")
    one = machine(impatient, tenants=receiver.tenants(), models=models)
    one.up()
    drop(one, 1)
    one.until(lambda: [end["type"] for end in one.outcomes().values()] == ["dev.wakeswap.dead_letter.failed.v1"], 120)
    ((job, end),) = one.outcomes().items()
    assert end["data"]["stage"] == "moderate"
    one.until(lambda: [message for message, _ in receiver.told] == [f"{job}.failed"], 30)
    models.unlink()
    models.symlink_to(ROOT / ".wakeswap/models")
    command = [sys.executable, "-m", "infra.local", "replay", end["data"]["dead_letter"], "--state", str(one.state)]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    one.until(lambda: [end["type"] for end in one.outcomes().values()] == [COMPLETED], 60)
    one.until(lambda: receiver.told[-1][0] == f"{job}.completed", 30)
    assert len(receiver.told) == 2


@pytest.mark.timeout(200)
def test_the_demo_waits_for_its_own_job_and_tells_its_own_fault(machine: Callable[..., Machine]) -> None:
    """While a file from another day is refused first, and another job ends well before it."""
    one = machine()
    drop(one, 1)
    (one.inbox / "old").mkdir()
    shutil.copy(ROOT / "tests/data/image/svg_named.png", one.inbox / "old/source.png")
    shutil.copy(FACE / "one_face.jpg", one.inbox / "old/target.jpg")
    done = demo(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg")
    assert done.returncode == 0, done.stderr
    shown = Path(done.stdout.splitlines()[-1].removeprefix("result: "))
    record = json.loads((one.objects / f"tenants/demo/jobs/{shown.stem}/job.json").read_text())
    assert "/inbox/demo-" in record["job"]["source"][0]["key"]
    refused = demo(one, FACE / "one_face.jpg", ROOT / "tests/data/image/svg_named.png")
    assert refused.returncode == 1
    assert "unsupported_media_type" in refused.stderr


def demo(one: Machine, source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infra.local", "demo", str(source), str(target),
               "--overlay", str(one.manifests), "--state", str(one.state)]  # fmt: skip
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=120)

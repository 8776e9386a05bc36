"""Videos under the local platform: split, worked on in parallel, joined; killed, cancelled, replayed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.contract.components import rendered
from tests.local.film import RATE, moving, pictures, sound
from tests.local.machine import ROOT, Machine

FACE = ROOT / "tests/data/face"
SECONDS = 12
"""As many segments."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def short_segments(docs: list[dict[str, Any]]) -> None:
    for doc in docs:
        if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
            doc["data"]["WAKESWAP_SEGMENT_SECONDS"] = "1"
            doc["data"]["WAKESWAP_LEASE_SECONDS"] = "3"


def longer_segments(docs: list[dict[str, Any]]) -> None:
    short_segments(docs)
    for doc in docs:
        if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
            doc["data"]["WAKESWAP_SEGMENT_SECONDS"] = "4"


def one_try_for_swap(docs: list[dict[str, Any]]) -> None:
    for doc in docs:
        if doc["kind"] == "Trigger" and doc["metadata"]["name"] == "swap":
            doc["spec"]["delivery"]["retry"] = 0


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path, short_segments)
    yield made
    made.down()


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return moving(tmp_path_factory.mktemp("clip") / "clip.mp4", FACE / "one_face.jpg", SECONDS)


def drop(machine: Machine, clip: Path, name: str = "film") -> None:
    folder = machine.inbox / name
    folder.mkdir()
    for source, goal in ((FACE / "one_face.jpg", "source.jpg"), (clip, "target.mp4")):
        shutil.copy(source, folder / f".{goal}")
        (folder / f".{goal}").rename(folder / goal)


def call(machine: Machine, method: str, path: str) -> Any:
    address = machine.facts()["services"]["intake"] + path
    request = urllib.request.Request(address, method=method, headers={"Authorization": f"Bearer {machine.key()}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def working_on(machine: Machine, stage: str) -> list[psutil.Process]:
    found = []
    for process in machine.processes():
        try:
            if f"shared.serving.app:create('{stage}')" in process.cmdline():
                found.append(process)
        except psutil.Error:
            continue
    return found


def folder(machine: Machine) -> Path:
    (found,) = (machine.objects / "tenants/demo/jobs").iterdir()
    return found


def finished(machine: Machine, seconds: float = 300) -> tuple[dict[str, Any], Path]:
    """The result of the one job, and its file."""
    machine.until(lambda: len(machine.outcomes()) == 1, seconds)
    ((_, end),) = machine.outcomes().items()
    assert end["type"] == "dev.wakeswap.publish.completed.v1", end
    return end["data"], machine.objects / end["data"]["image"]["key"]


def works(machine: Machine, stage: str) -> int:
    return len(list((folder(machine) / stage).glob("work.*.json")))


def test_twelve_segments_come_back_as_one_video_and_kills_change_no_pixel_of_it(
    tmp_path: Path, machine: Machine, clip: Path
) -> None:
    machine.up()
    drop(machine, clip)
    result, path = finished(machine)
    assert (result["frames"], result["seconds"], result["media"]) == (SECONDS * RATE, SECONDS, "video")
    assert result["frames_swapped"] + result["frames_without_face"] == result["frames"]
    assert result["frames_swapped"] > result["frames"] / 2
    undisturbed, source = pictures(path), pictures(clip)
    assert [at for at, _ in undisturbed] == [at for at, _ in source]
    assert sound(path) == sound(clip)
    assert len(list((folder(machine) / "assemble").glob("clip.*.json"))) == SECONDS
    assert [works(machine, stage) for stage in ("split", "detect", "swap", "assemble", "publish")] == [
        *(1, SECONDS, SECONDS, SECONDS, 1)
    ]
    shown = call(machine, "GET", f"/v1/jobs/{result['job']}")
    progress = {"frames_done": 300, "frames": 300, "segments_done": SECONDS, "segments": SECONDS}
    assert (shown["progress"], shown["result"]["frames"]) == (progress, 300)
    machine.until(machine.asleep, 60)
    disturbed = Machine(tmp_path / "again", short_segments)
    try:
        _disturb(disturbed, clip)
        _, other = finished(disturbed)
        again = pictures(other)
        assert [at for at, _ in again] == [at for at, _ in undisturbed]
        assert all(np.array_equal(one, two) for (_, one), (_, two) in zip(again, undisturbed, strict=True))
        assert sound(other) == sound(clip)
        disturbed.until(disturbed.asleep, 120)
        ends = Counter(event["type"] for event in disturbed.admin("/events") if event["trigger"] == "wakeswap/meter")
        assert ends == {"dev.wakeswap.publish.completed.v1": 1}
        assert len(list((disturbed.objects / "tenants/demo/results").iterdir())) == 1
    finally:
        disturbed.down()


def _disturb(machine: Machine, clip: Path) -> None:
    """Kill -9 three functions, each while the video is under way."""
    chance = random.Random(7)
    machine.up()
    drop(machine, clip)
    for share in (1, 4, 8):
        machine.until(lambda share=share: _done(machine) >= share, 300)
        machine.until(lambda: machine.kill_one(chance), 60)


def _done(machine: Machine) -> int:
    return len(list((machine.objects / "tenants/demo/jobs").glob("*/assemble/clip.*.json")))


def test_a_cancelled_video_stops_all_its_segments_and_leaves_nothing(machine: Machine, clip: Path) -> None:
    machine.up()
    drop(machine, clip)
    machine.until(lambda: _done(machine) >= 2, 300)
    job = folder(machine).name
    call(machine, "DELETE", f"/v1/jobs/{job}")
    machine.until(machine.asleep, 120)
    done = _done(machine)
    assert done < SECONDS
    assert call(machine, "GET", f"/v1/jobs/{job}")["status"] == "cancelled"
    machine.until(machine.asleep, 60)
    assert _done(machine) == done
    kept = [path for path in folder(machine).rglob("*") if path.is_file() and path.suffix != ".json"]
    assert [path for path in kept if not path.name.startswith(".")] == []
    assert machine.outcomes() == {}


def test_a_dead_letter_of_one_segment_fails_the_video_and_its_replay_redoes_that_segment_only(
    tmp_path: Path, clip: Path
) -> None:
    machine = Machine(tmp_path, short_segments, one_try_for_swap)
    machine.up()
    try:
        drop(machine, clip)
        machine.until(lambda: _done(machine) >= 2 and bool(working_on(machine, "swap")), 300)
        machine.until(lambda: _killed_in_mid_work(machine), 120)
        machine.until(lambda: len(machine.outcomes()) == 1, 120)
        ((_, end),) = machine.outcomes().items()
        assert end["type"] == "dev.wakeswap.dead_letter.failed.v1"
        machine.until(machine.asleep, 240)
        done, letters = _done(machine), [event["id"] for event in machine.admin("/events") if event["state"] == "dead"]
        assert done < SECONDS
        for letter in letters:
            command = [sys.executable, "-m", "infra.local", "replay", letter, "--state", str(machine.state)]
            subprocess.run(command, cwd=ROOT, check=True, timeout=60)
        machine.until(lambda: "publish" in json.dumps(machine.outcomes()), 300)
        result, path = finished(machine)
        assert result["frames"] == SECONDS * RATE
        assert [at for at, _ in pictures(path)] == [at for at, _ in pictures(clip)]
        assert [works(machine, stage) for stage in ("detect", "swap")] == [SECONDS] * 2, "each segment by one event"
    finally:
        machine.down()


def test_a_video_whose_segments_are_jobs_loses_nothing_when_their_pods_are_killed(tmp_path: Path, clip: Path) -> None:
    machine = Machine(tmp_path, longer_segments, docs=rendered("local", "long-video"))
    machine.up()
    try:
        drop(machine, clip)
        machine.until(lambda: _job_killed(machine, "swap"), 300)
        result, path = finished(machine)
        assert result["frames"] == SECONDS * RATE
        assert [at for at, _ in pictures(path)] == [at for at, _ in pictures(clip)]
        assert sound(path) == sound(clip)
        machine.until(machine.asleep, 60)
        parts = len(json.loads((folder(machine) / "split/plan.json").read_text())["parts"])
        jobs = machine.admin("/status")["jobs"]
        done = {name: counts["done"] for name, counts in jobs.items()}
        assert done == {"split": 1, **dict.fromkeys(("detect", "swap", "assemble"), parts)}
        assert [works(machine, stage) for stage in ("detect", "swap")] == [parts] * 2
        services = machine.admin("/status")["services"]
        assert not {"split", "assemble"} & services.keys()
        assert [name for name in ("detect", "swap") if services[name]["in_flight"]] == []
    finally:
        machine.down()


def _job_killed(machine: Machine, stage: str) -> bool:
    """Kill a pod of a Job while it holds a lease."""
    jobs = machine.objects / "tenants/demo/jobs"
    held = [path for path in jobs.glob(f"*/{stage}/work.*.json") if '"reply"' not in path.read_text()]
    for process in machine.processes() if held else ():
        with suppress(psutil.Error):
            if process.cmdline()[-2:] == ["shared.serving.once", stage]:
                process.kill()
                return True
    return False


def _killed_in_mid_work(machine: Machine) -> bool:
    """Kill a worker of swap while it holds a lease."""
    held = [path for path in (folder(machine) / "swap").glob("work.*.json") if '"reply"' not in path.read_text()]
    if not held:
        return False
    victims = working_on(machine, "swap")
    for victim in victims:
        victim.kill()
    return bool(victims)

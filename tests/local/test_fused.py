"""The component `fused-front` under the local platform: the same picture and the same records, from one process."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.events.codec import decode
from shared.events.event import Event
from shared.serving.record import Record
from tests.contract.components import rendered
from tests.local.machine import Machine
from tests.local.test_pipeline import COMPLETED, FACE, drop, machine, post

__all__ = ["machine"]
STAGES = ("moderate", "detect", "swap", "publish")
pytestmark = pytest.mark.slow


def fuse(docs: list[dict[str, Any]]) -> None:
    """The local overlay with the component, and the test's own settings kept."""
    configs = [doc for doc in docs if doc["kind"] == "ConfigMap"]
    fused = [doc for doc in rendered("local", "fused-front") if doc["kind"] != "ConfigMap"]
    docs[:] = [*configs, *json.loads(json.dumps(fused))]


def work(one: Machine) -> tuple[bytes, dict[str, Event]]:
    """The picture of one job, and what each of its stages said."""
    status, answer = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg", **{"Idempotency-Key": "same"})
    assert (status, answer["status"]) == (200, "succeeded"), answer
    assert [entry["stage"] for entry in answer["stages"]] == list(STAGES)
    folder = one.objects / "tenants/demo/jobs" / answer["id"]
    said = {}
    for stage in STAGES:
        (path,) = folder.glob(f"{stage}/work.*")
        reply = Record.decode(path.read_bytes()).reply
        assert reply
        said[stage] = decode(dict(reply.headers), reply.body, limit=1_000_000)
    (picture,) = (one.objects / "tenants/demo/results").iterdir()
    return picture.read_bytes(), said


def told(event: Event) -> dict[str, Any]:
    """Everything but when, and by whose key: the time, the span, the link's signature, the proof."""
    extensions = {name: value for name, value in event.extensions.items() if name not in ("traceparent", "proof")}
    data: Any = event.data
    data = {name: value for name, value in data.items() if name not in ("link", "expires")}
    request = data.get("request", data)
    request.pop("created", None)
    return {"id": event.id, "type": event.type, "source": event.source, "extensions": extensions, "data": data}


@pytest.mark.timeout(200)
def test_fused_stages_make_the_same_picture_and_the_same_records(tmp_path: Path) -> None:
    seen = []
    for name, changes in (("apart", ()), ("fused", (fuse,))):
        (tmp_path / name).mkdir()
        one = Machine(tmp_path / name, *changes, idle=2)
        try:
            one.up()
            seen.append(work(one))
            services = one.admin("/status")["services"]
            history = one.admin("/events?limit=1000")
        finally:
            one.down()
    (picture, apart), (fused_picture, fused) = seen
    assert picture == fused_picture
    assert {stage: told(event) for stage, event in apart.items()} == {
        stage: told(event) for stage, event in fused.items()
    }
    assert not {"detect", "swap", "publish"} & set(services)
    assert len(services["fused"]["wakes"]) == 1
    types = {entry["type"] for entry in history}
    assert "dev.wakeswap.publish.completed.v1" in types
    assert not types & {"dev.wakeswap.detect.completed.v1", "dev.wakeswap.swap.completed.v1"}


@pytest.mark.timeout(300)
def test_kill_9_in_mid_chain_loses_and_doubles_nothing(machine: Callable[..., Machine]) -> None:
    one, jobs, kills, seed = machine(fuse, idle=5), 12, 0, random.Random(11)
    one.up()
    drop(one, jobs)
    while len(one.outcomes()) < jobs:
        time.sleep(seed.uniform(0.3, 1.0))
        if kills < 6:
            kills += one.kill_one(seed)
    assert kills == 6
    assert Counter(end["type"] for end in one.outcomes().values()) == {COMPLETED: jobs}
    results = list((one.objects / "tenants/demo/results").iterdir())
    assert len(results) == jobs
    assert len({path.read_bytes() for path in results}) == 1
    one.until(one.asleep, 60)

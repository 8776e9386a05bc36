"""The component `spot-batch` under the local platform: batch jobs on Services of their own, and their node lost again
and again in the middle of the work."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil
import pytest

from shared.serving.record import Record
from tests.contract.components import rendered
from tests.local.machine import Machine
from tests.local.test_pipeline import COMPLETED, FACE, machine, post
from tests.local.test_quota import fill, no_uploads, quick_clock, reveal
from tests.local.test_wake_ahead import REFUSED, woken

__all__ = ["machine"]
pytestmark = pytest.mark.slow

STAGES = ("moderate", "detect", "swap", "publish")
BATCH = {f"{stage}-batch" for stage in STAGES}
NODES = {"affinity", "tolerations", "priorityClassName"}
"""Fields of a pod that one machine has nothing for."""
LOSSES = 5


def apart(docs: list[dict[str, Any]]) -> None:
    """The local overlay with the component, less the fields named above; the test's own settings kept."""
    configs = [doc for doc in docs if doc["kind"] == "ConfigMap"]
    stages = [doc for doc in rendered("local", "spot-batch") if doc["kind"] not in ("ConfigMap", "PriorityClass")]
    docs[:] = [*configs, *json.loads(json.dumps(stages))]
    for doc in docs:
        if doc["apiVersion"].startswith("serving."):
            pod = doc["spec"]["template"]["spec"]
            taken = {field for field in NODES if pod.pop(field, None)}
            assert taken == (NODES if doc["metadata"]["name"].endswith("-batch") else set())


def not_yet_narrowed(docs: list[dict[str, Any]]) -> None:
    """As after the first step of the README: the stages' own Triggers still hear batch jobs too."""
    for doc in docs:
        if doc["kind"] == "Trigger" and not doc["metadata"]["name"].endswith("-batch"):
            filters = doc["spec"]["filters"]
            doc["spec"]["filters"] = [entry for entry in filters if entry != {"not": {"exact": {"priority": "batch"}}}]


def billed(one: Machine) -> int:
    return len(list((one.objects / "tenants/demo/usage").glob("*/*.json")))


def lose_the_node(one: Machine) -> set[str]:
    """SIGKILL to every process of every batch Service at once. The attempts that were cut off thereby."""
    killed = set()
    for process in psutil.Process(one.pid).children():
        with suppress(psutil.NoSuchProcess):
            service = process.environ().get("K_SERVICE", "")
            if service.endswith("-batch"):
                assert os.getpgid(process.pid) == process.pid, "a pod is a group of processes"
                os.killpg(process.pid, signal.SIGKILL)
                killed.add(service.removesuffix("-batch"))
    return {owner for owner, stage in unfinished(one).items() if stage in killed}


def unfinished(one: Machine) -> dict[str, str]:
    """Each attempt at a job's stage that was begun and has no reply, and the stage."""
    found = {}
    for path in (one.objects / "tenants/demo/jobs").glob("*/*/work.*"):
        with suppress(FileNotFoundError, ValueError):
            record = Record.decode(path.read_bytes())
            if not record.finished:
                found[record.owner] = path.parent.name
    return found


@pytest.mark.timeout(600)
def test_lost_spot_nodes_in_mid_job_lose_and_double_nothing(machine: Callable[..., Machine]) -> None:
    policy = {"max_concurrent": 6, "max_batch": 4, "wake": "ahead"}
    tenants = {"demo": {"policy": policy}, "acme": {}}  # the clock of test_quota strikes for both
    one, jobs = machine(apart, quick_clock, no_uploads, tenants=tenants, idle=5), 10
    fill(one, "demo", jobs)
    one.up()
    reveal(one, "demo")
    losses, cut = 0, set[str]()
    while losses < LOSSES:
        one.until(lambda: bool(unfinished(one).keys() - cut), 120)
        time.sleep(0.2)  # into the work
        assert len(one.outcomes()) < jobs, "too few jobs for so many losses"
        fresh = lose_the_node(one) - cut
        losses += bool(fresh)
        cut.update(fresh)
    assert not woken(one) & set(STAGES), "no batch job came to an interactive Service"
    assert woken(one) >= BATCH
    status, answer = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg")
    assert (status, answer["status"]) == (200, "succeeded"), answer
    assert woken(one) >= set(STAGES)
    one.until(lambda: len(one.outcomes()) == jobs + 1, 300)
    assert Counter(end["type"] for end in one.outcomes().values()) == {COMPLETED: jobs + 1}
    pictures = [path.read_bytes() for path in (one.objects / "tenants/demo/results").iterdir()]
    assert sorted(Counter(pictures).values()) == [1, jobs], "of each job one, all of the batch alike"
    one.until(lambda: billed(one) == jobs + 1, 120)
    one.until(lambda: all(one.admin("/status")["services"][name]["pods"] == 0 for name in BATCH), 120)


def test_a_batch_job_wakes_the_batch_services_ahead_and_no_others(machine: Callable[..., Machine]) -> None:
    one = machine(apart, tenants={"demo": {"policy": {"wake": "ahead", "priority": "batch"}}}, idle=2)
    one.up()
    status, problem = post(one, FACE / "one_face.jpg", REFUSED)
    assert (status, problem["code"]) == (422, "media_truncated")
    one.until(one.asleep, 60)
    assert woken(one) == {"intake", "notify", "meter"} | BATCH


@pytest.mark.timeout(300)
def test_a_batch_job_that_both_services_hear_ends_once(machine: Callable[..., Machine]) -> None:
    one, jobs = machine(apart, not_yet_narrowed, tenants={"demo": {"policy": {"priority": "batch"}}}, idle=2), 3
    one.up()
    for number in range(jobs):
        headers = {"Idempotency-Key": str(number)}
        status, answer = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg", "wait=60", **headers)
        assert (status, answer["status"]) == (200, "succeeded"), answer
    one.until(one.asleep, 120)
    assert woken(one) >= BATCH | set(STAGES)
    assert len(list((one.objects / "tenants/demo/results").iterdir())) == jobs
    assert (len(one.outcomes()), billed(one)) == (jobs, jobs)

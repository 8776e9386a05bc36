"""Retention as a real process that is killed again and again, and on a real S3."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from infra.retention.due import Terms
from infra.retention.proving import prove
from infra.retention.run import Report, Run
from shared.audit.marks import Marks
from shared.audit.trail import Trail
from shared.events.payloads import Job, ObjectRef, Result
from shared.jobs import records
from shared.jobs.records import JobRecord, timestamp
from shared.serving.outcome import Outcomes
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.tenancy.tenant import Policy
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed
from tests.services.process import ROOT
from tests.unit.retention.world import AUDIT_KEY, HOUR, World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
JOBS = 60


def test_killed_again_and_again_it_deletes_all_and_says_so_once(tmp_path: Path) -> None:
    world = World(tmp_path / "objects")
    for index in range(JOBS):
        world.job(f"job-{index:05}", 40, ended=30, upload=f"person-{index}")
    environ = {
        **os.environ,
        "WAKESWAP_STORE_URL": f"file:{world.root}",
        "WAKESWAP_TENANTS": '{"demo": {"policy": {"keep_inputs_hours": 24, "keep_results_hours": 24}}}',
        "WAKESWAP_AUDIT_KEY": AUDIT_KEY,
        "WAKESWAP_EVENT_KEYS": "unsigned",
    }
    command, killed, random_ = [sys.executable, "-m", "infra.retention", "run"], 0, random.Random(5)
    while True:
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.DEVNULL)
        try:
            assert process.wait(random_.uniform(0.4, 0.9) if killed < 12 else 300) == 0
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
    assert killed
    assert not world.names("tenants/demo/jobs/") | world.names("tenants/demo/inbox/") | world.names("system/retention/")
    lines = [one for one in world.lines() if one["what"] == "retention"]
    counted = Counter((one["job"], one["code"]) for one in lines)
    assert counted == {
        (f"job-{index:05}", kind): 1 for index in range(JOBS) for kind in ("inputs", "result", "records")
    }
    objects = Counter[object]()
    for one in lines:
        assert isinstance(one["facts"], dict)
        objects[one["code"]] += one["facts"]["objects"]
    assert objects == {"inputs": 3 * JOBS, "result": JOBS, "records": 3 * JOBS}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    from shared.storage.s3 import S3Store

    server = Seaweed(tmp_path)
    server.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    boto3.setup_default_session()
    boto3.client("s3").create_bucket(Bucket="wakeswap")
    yield S3Store("wakeswap")
    server.stop()


def test_on_s3(store: ObjectStore) -> None:
    job, trail = "job-on-s3-1", Trail(store, Marks(AUDIT_KEY))
    info = store.put(keys.inbox("demo", "anna/source.jpg"), b"a picture")
    ref = ObjectRef(info.key, "0" * 64, info.size, "image/jpeg")
    records.create(store, "demo", JobRecord(Job(job, (ref,), ref, created=timestamp(time.time() + 1))))
    store.put(keys.job("demo", job, "detect", "landmarks.npz"), b"x")
    store.put(keys.result("demo", f"{job}.jpg"), b"a result")
    image = ObjectRef(keys.result("demo", f"{job}.jpg"), "0" * 64, 8, "image/jpeg")
    assert Outcomes(store, "publish").settle("demo", Result(job, image, 4, 3, (), "file:///x", "2030-01-01"), "c")
    kept = store.put("tenants/demo/templates/t/target.jpg", b"a template").key

    def run(hours: float) -> Report:
        terms = Terms.of(Policy(), 336)
        return Run(store, trail, "demo", terms, time.time() + hours * HOUR, lambda _: pytest.fail("ended")).all()

    assert run(23).objects == {}
    assert run(25).objects == {"inputs": 2}
    assert run(25).objects == {}
    assert [left.kind for left in prove(store, trail, "demo", job).left] == ["record", "record", "record", "result"]
    assert run(721).objects == {"result": 1, "records": 3}
    assert prove(store, trail, "demo", job).holds
    assert [entry.key for entry in store.list("tenants/").objects] == [kept]

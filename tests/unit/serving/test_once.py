"""One event in a process of its own, as a Job runs it: records like a Service's, and an exit code for the Job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import ConfigError
from shared.events.codec import encode_structured
from shared.events.event import Event, reply_id
from shared.jobs import views
from shared.serving import once
from shared.storage import keys
from shared.storage.local import LocalStore
from tests.signing import EVENT_KEYS, signed
from tests.unit.serving.support import JOB, App, event, job, until
from tests.unit.serving.test_emitter import broker

ROOT = Path(__file__).resolve().parents[3]


def environ(root: Path, sink: str, sent: Event, **more: str) -> dict[str, str]:
    """The event mounted as JobSink mounts it, in a folder."""
    mounted = root / "jobsink-event"
    mounted.mkdir(parents=True, exist_ok=True)
    (mounted / "event").write_bytes(encode_structured(sent)[1])
    return {
        "WAKESWAP_STORE_URL": f"file:{root / 'store'}",
        "WAKESWAP_TENANTS": '{"demo": {}}',
        "WAKESWAP_EVENT_KEYS": EVENT_KEYS,
        "K_EVENT_PATH": str(mounted),
        "K_SINK": sink,
        **more,
    }


@pytest.fixture(autouse=True)
def kept_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler of SIGTERM is for a process of its own."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)


def run(settings: dict[str, str], stage: str = "relay") -> int:
    return once.run(stage, settings, "tests.services")


def test_the_reply_is_published_once_however_often_the_job_runs(tmp_path: Path) -> None:
    with broker() as server:
        settings = environ(tmp_path, server.address, signed(event()))
        assert [run(settings) for _ in range(2)] == [0, 0]
    assert [headers["ce-id"] for _, headers, _ in server.received] == [reply_id("relay", event(), "completed")]
    names = [entry.key for entry in LocalStore(tmp_path / "store").list(keys.job("demo", JOB)).objects]
    assert names == [keys.work("demo", JOB, "relay", event().digest)]


def test_the_event_may_be_named_itself(tmp_path: Path) -> None:
    with broker() as server:
        settings = environ(tmp_path, server.address, signed(event()))
        assert run({**settings, "K_EVENT_PATH": settings["K_EVENT_PATH"] + "/event"}) == 0
    assert len(server.received) == 1


def test_a_stage_that_fans_out_publishes_each_part(tmp_path: Path) -> None:
    with broker() as server:
        assert run(environ(tmp_path, server.address, signed(event(job("3")))), "fanning") == 0
    assert len(server.received) == 3


def test_what_may_pass_is_tried_again_by_the_job(tmp_path: Path) -> None:
    with broker() as server:
        settings = environ(tmp_path, server.address, signed(event(job("raise:ModelError"))))
        assert [run(settings) for _ in range(2)] == [once.AGAIN] * 2
    assert server.received == []


def test_what_never_will_ends_the_job_and_keeps_the_event(tmp_path: Path) -> None:
    with broker() as server:
        sent = signed(event(job("raise:InvalidCloudEventError")))
        assert run(environ(tmp_path, server.address, sent)) == once.NEVER
    ((_, headers, body),) = server.received
    assert headers["ce-type"] == "dev.wakeswap.relay.failed.v1"
    assert json.loads(body)["code"] == "invalid_cloudevent"
    store = LocalStore(tmp_path / "store")
    assert store.head(keys.system("dead-letter", sent.digest + ".json"))
    outcome = views.read_outcome(store, "demo", JOB)
    assert outcome
    assert (outcome.status, outcome.stage) == ("failed", "relay")


def test_in_the_name_of_an_event_without_a_right_proof_nothing_is_said(tmp_path: Path) -> None:
    forged = replace(signed(event()), extensions={"tenantid": "demo", "proof": "test." + "0" * 64})
    with broker() as server:
        assert run(environ(tmp_path, server.address, forged)) == once.NEVER
    assert server.received == []
    assert views.read_outcome(LocalStore(tmp_path / "store"), "demo", JOB) is None


def test_a_rejection_is_an_end_like_any_other(tmp_path: Path) -> None:
    with broker() as server:
        assert run(environ(tmp_path, server.address, signed(event(job("raise:NoFaceInSourceError"))))) == 0
    assert [headers["ce-type"] for _, headers, _ in server.received] == ["dev.wakeswap.relay.rejected.v1"]


@pytest.mark.parametrize(("stage", "sink"), [("relay", ""), ("door", "http://127.0.0.1:1/")])
def test_who_could_not_work_alone_does_not_start(tmp_path: Path, stage: str, sink: str) -> None:
    with pytest.raises(ConfigError):
        run(environ(tmp_path, sink, signed(event())), stage)


def test_a_service_repeats_what_a_job_has_done(tmp_path: Path) -> None:
    with broker() as server:
        assert run(environ(tmp_path, server.address, signed(event()))) == 0
        app = App("relay", tmp_path / "store", K_SINK=server.address)
        assert app.deliver(event()).status_code == 202
    assert len(server.received) == 1


def test_a_node_that_is_taken_away_hands_the_work_back(tmp_path: Path) -> None:
    code = "import os, sys; from shared.serving import once; sys.exit(once.run('slow', os.environ, 'tests.services'))"
    with broker() as server:
        more = {"WAKESWAP_TIMEOUT_SECONDS": "4", "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        settings = environ(tmp_path, server.address, signed(event(job("30"))), **more)
        process = subprocess.Popen([sys.executable, "-c", code], env=settings, cwd=ROOT)
        store = LocalStore(tmp_path / "store")
        until(lambda: store.list(keys.job("demo", JOB)).objects, 60)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == once.AGAIN
    assert server.received == []

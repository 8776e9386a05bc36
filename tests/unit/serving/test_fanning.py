"""One event that leads to several, and parts of a job that is over before they are done."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from shared.errors import ConfigError
from shared.events.codec import from_payload
from shared.events.event import Event, reply_id
from shared.events.payloads import Rejection, Segment
from shared.jobs.records import CANCELLED, JSON, OUTCOME
from shared.records import dumps
from shared.serving.outcome import Outcomes
from shared.storage import keys
from tests.services.fanning import main as fanning
from tests.unit.serving.support import JOB, PICTURE, App, event, job, until
from tests.unit.serving.test_emitter import broker


def segment(event_id: str = "s-1") -> Event:
    sent = event(Segment(JOB, job(), PICTURE, 0), stage="split", event_id=event_id)
    return replace(sent, extensions={**sent.extensions, "media": "segment"})


@pytest.fixture
def held() -> Iterator[None]:
    fanning.go.clear()
    fanning.started.clear()
    yield
    fanning.go.set()


def test_each_part_is_an_event_of_its_own_and_a_repeat_sends_none(tmp_path: Path) -> None:
    with broker() as server:
        app = App("fanning", tmp_path, K_SINK=server.address)
        answers = [app.run("3") for _ in range(2)]
    assert [(answer.status_code, answer.data) for answer in answers] == [(202, b"")] * 2
    sent = [headers for _, headers, _ in server.received]
    assert [entry["ce-id"] for entry in sent] == [reply_id("fanning", event(), "completed", part) for part in range(3)]
    assert {entry["ce-media"] for entry in sent} == {"segment"}
    assert all(entry["ce-proof"] for entry in sent)


def test_a_broker_that_fails_between_two_parts_gets_all_of_them_again(tmp_path: Path) -> None:
    with broker(202, 400) as server:
        app = App("fanning", tmp_path, K_SINK=server.address)
        assert app.run("3").status_code == 503
        assert app.run("3").status_code == 202
    ids = [headers["ce-id"] for _, headers, _ in server.received]
    assert ids[:2] == ids[2:4]
    assert len(set(ids)) == 3


def test_no_parts_are_nothing_to_say(tmp_path: Path) -> None:
    with broker() as server:
        assert App("fanning", tmp_path, K_SINK=server.address).run("0").status_code == 204
    assert server.received == []


def test_a_stage_that_fans_out_does_not_start_without_a_sink(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        App("fanning", tmp_path)
    assert refused.value.context == {"field": "K_SINK"}


@pytest.mark.parametrize(("what", "sent"), [("cancelled", False), ("rejected", False), ("failed", True)])
def test_a_part_of_a_job_that_is_over_does_nothing(tmp_path: Path, held: None, what: str, sent: bool) -> None:
    fanning.go.set()
    with broker() as server:
        app = App("fanning", tmp_path, K_SINK=server.address)
        _end(app, what)
        app.deliver(segment())
    assert [bool(server.received), fanning.started.is_set()] == [sent, sent]


def test_the_part_that_has_ended_the_job_says_so_again_after_a_crash(tmp_path: Path, held: None) -> None:
    fanning.go.set()
    with broker() as server:
        app = App("fanning", tmp_path, K_SINK=server.address)
        Outcomes(app.store, "fanning").settle("demo", Rejection(JOB, "fanning", "a", "b", 422), segment().digest)
        app.deliver(segment())
    assert fanning.started.is_set()


@pytest.mark.parametrize("what", ["cancelled", "rejected"])
def test_work_on_a_part_stops_when_its_job_is_over(tmp_path: Path, held: None, what: str) -> None:
    with broker() as server:
        app = App("fanning", tmp_path, K_SINK=server.address, WAKESWAP_LEASE_SECONDS="1")
        answers: list[TestResponse] = []
        worker = threading.Thread(target=lambda: answers.append(app.deliver(segment())))
        worker.start()
        until(fanning.started.is_set)
        _end(app, what)
        worker.join(60)
    assert answers[0].status_code == 204
    assert server.received == []
    if what == "cancelled":
        assert not [name for name in app.names(keys.job("demo", JOB)) if not name.endswith(".json")]


def _end(app: App, what: str) -> None:
    if what == "cancelled":
        app.store.create(keys.job("demo", JOB, CANCELLED), b"{}", content_type=JSON)
        return
    end = Rejection(JOB, "detect", "no_face_in_source", "No face.", 422)
    document = {"type": f"dev.wakeswap.detect.{what}.v1", "cause": "another", "data": from_payload(end)}
    if what == "failed":
        document["data"] = {"job": JOB, "stage": "detect", "code": "x", "detail": "y", "dead_letter": "z"}
    app.store.create(keys.job("demo", JOB, OUTCOME), dumps(document), content_type=JSON)

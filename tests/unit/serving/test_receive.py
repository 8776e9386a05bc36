"""The event path: who the tenant is, what is taken once, what is dropped, what the reply looks like."""

from __future__ import annotations

import io
import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import DeadlineExceededError, StoppingError
from shared.events.codec import decode
from shared.events.event import reply_id
from shared.events.payloads import Failure, Payload, Rejection, Result
from shared.serving.context import EventDeadline
from shared.serving.lifecycle import Lifecycle
from shared.storage import keys
from shared.telemetry.logs import JsonFormatter
from shared.telemetry.redact import Redactor
from tests.services.held import main as held
from tests.services.mixed import main as mixed
from tests.unit.serving.support import JOB, PICTURE, App, event, job, until


@contextmanager
def logging_to(stream: io.StringIO) -> Iterator[None]:
    """The product's own log lines for as long as the block runs."""
    handler, root = logging.StreamHandler(stream), logging.getLogger("shared")
    handler.setFormatter(JsonFormatter(Redactor()))
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


DATA = Path(__file__).parents[2] / "data" / "event"


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App("relay", tmp_path)


def test_the_reply_follows_from_its_cause(app: App) -> None:
    cause = event()
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    cause = replace(cause, extensions={"tenantid": "demo", "traceparent": trace, "priority": "batch"})
    answer = app.deliver(cause)
    reply = decode(dict(answer.headers), answer.data, limit=100_000)
    assert reply.id == reply_id("relay", cause, "completed")
    assert (reply.source, reply.subject) == ("/wakeswap/relay", JOB)
    assert reply.type == "dev.wakeswap.relay.completed.v1"
    assert reply.extensions["tenantid"] == "demo"
    assert reply.extensions["priority"] == "batch"
    assert reply.extensions["partitionkey"] == JOB
    caller, ours = trace.split("-"), str(reply.extensions["traceparent"]).split("-")
    assert ours[1] == caller[1]
    assert ours[2] != caller[2]


def test_the_trace_of_the_request_counts_when_the_event_has_none(app: App) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    answer = app.deliver(event(), traceparent=f"00-{trace_id}-b7ad6b7169203331-01")
    assert answer.headers["ce-traceparent"].split("-")[1] == trace_id


def test_a_refusal_is_logged_with_whose_event_it_was(app: App) -> None:
    stream = io.StringIO()
    with logging_to(stream):
        app.run("raise:ModelError")
        app.run("bug:x", "e-2")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {line["level"] for line in lines} >= {"WARNING", "ERROR"}
    for line in lines:
        assert (line["tenant"], line["job"], line["stage"]) == ("demo", JOB, "relay"), line
        assert len(line["trace_id"]) == 32


def test_a_repeat_gets_the_stored_reply_byte_for_byte(app: App) -> None:
    first, second = app.run("http"), app.run("http")
    assert second.data == first.data
    assert second.headers.to_wsgi_list() == first.headers.to_wsgi_list()


def test_two_events_of_one_id_from_two_sources_are_two(app: App) -> None:
    one, other = event(), replace(event(), source="/wakeswap/elsewhere")
    assert app.deliver(one).headers["ce-id"] != app.deliver(other).headers["ce-id"]


def test_nothing_to_say_is_204_and_empty(app: App) -> None:
    for _ in range(2):
        answer = app.run("nothing")
        assert (answer.status_code, answer.data) == (204, b"")


def test_the_record_tells_when_and_how_long(app: App) -> None:
    app.run("http")
    app.run("http", "e-2")
    records = [json.loads(app.store.get(key)[0]) for key in app.names(keys.job("demo", JOB)) if "/relay/work." in key]
    assert len(records) == 2
    assert all(record["finished"] >= record["started"] > 0 for record in records)
    assert sorted(record["woke"] > 0 for record in records) == [False, True], "only the first event woke the process"


def test_two_deliveries_at_once_are_one_execution(tmp_path: Path) -> None:
    app = App("held", tmp_path, WAKESWAP_CONCURRENCY="2")
    held.go.clear()
    held.started.clear()
    answers = []
    worker = threading.Thread(target=lambda: answers.append(app.run("http")))
    worker.start()
    until(lambda: held.started)
    busy = app.run("http")
    held.go.set()
    worker.join()
    assert busy.status_code == 409
    assert busy.get_json(force=True)["code"] == "in_progress"
    assert answers[0].status_code == 200
    assert app.run("http").data == answers[0].data
    assert held.started == [JOB]


def test_the_tenant_comes_from_the_extension_and_must_be_known(app: App) -> None:
    for tenant in ("", "stranger"):
        answer = app.deliver(event(tenant=tenant))
        assert answer.status_code == 422
        assert answer.get_json(force=True)["code"] == "unknown_tenant"
    assert app.names("tenants/stranger") == []


def test_data_that_names_another_job_than_the_subject_is_refused(app: App) -> None:
    answer = app.deliver(replace(event(), subject="job-00000002"))
    assert answer.status_code == 400


def test_a_cancelled_job_gets_no_more_work(app: App) -> None:
    app.store.create(keys.job("demo", JOB, "cancelled.json"), b"{}")
    assert app.run("raise:ModelError").status_code == 204


def test_a_second_end_of_a_job_is_not_sent(app: App) -> None:
    assert app.run("result", "e-1").status_code == 200
    assert app.run("result", "e-2").status_code == 204
    assert app.run("raise:NoFaceInTargetError", "e-3").status_code == 204
    assert app.run("result", "e-1").status_code == 200


def test_ce_07_events_of_its_own_do_not_come_back(app: App) -> None:
    answer = app.deliver(event(stage="relay"))
    assert (answer.status_code, answer.data) == (204, b"")


def test_ce_07_an_answer_is_an_event_or_empty(app: App) -> None:
    """With and without `Prefer: reply`; never a 2xx with a body that is no event."""
    for prefer in ({}, {"Prefer": "reply"}):
        for number, origin in enumerate(("http", "nothing", "result", "raise:NoFaceInSourceError")):
            answer = app.deliver(event(job(origin), event_id=f"e-{number}"), **prefer)
            assert 200 <= answer.status_code < 300
            if answer.data:
                assert answer.headers["ce-specversion"] == "1.0"
                assert answer.headers["ce-type"] != event().type


def test_a_stage_that_takes_several_payloads_gets_the_one_of_the_outcome(tmp_path: Path) -> None:
    app = App("mixed", tmp_path)
    ends: list[Payload] = [
        Result(JOB, PICTURE, 1, 1, (), "file:///x", "2030-01-01T00:00:00Z"),
        Rejection(JOB, "detect", "no_face_in_source", "No face.", 422),
        Failure(JOB, "swap", "model_unavailable", "Gave up.", "e-9"),
    ]
    mixed.seen.clear()
    for number, end in enumerate(ends):
        assert app.deliver(event(end, event_id=f"e-{number}")).status_code == 204
    assert mixed.seen == ends
    foreign = replace(event(ends[0]), id="e-9", type="com.example.other")
    assert app.deliver(foreign).status_code == 400


@pytest.mark.parametrize("origin", ["other", "text"])
def test_a_stage_that_answers_for_another_job_is_a_bug(tmp_path: Path, origin: str) -> None:
    assert App("foreign", tmp_path).run(origin).status_code == 500


def test_an_event_has_the_time_that_the_service_gives_it(tmp_path: Path) -> None:
    remaining = App("relay", tmp_path, WAKESWAP_TIMEOUT_SECONDS="70").run("remaining").get_json()["context"]["seconds"]
    assert 60 < remaining <= 70


def test_time_that_ran_out_may_pass() -> None:
    life = Lifecycle(grace=100)
    EventDeadline(time.monotonic() + 50, life).check()
    with pytest.raises(DeadlineExceededError):
        EventDeadline(time.monotonic() - 1, life).check()
    life.stop(at_once=True)
    with pytest.raises(StoppingError):
        EventDeadline(time.monotonic() + 50, life).check()


def test_batches_and_oversized_events_are_refused(tmp_path: Path) -> None:
    app = App("relay", tmp_path, WAKESWAP_MAX_EVENT_BYTES="2048")
    batch = app.client.post("/", data=b"[]", headers={"content-type": "application/cloudevents-batch+json"})
    assert batch.status_code == 415
    large = app.client.post("/", data=b"x" * 2049, headers={"content-type": "application/cloudevents+json"})
    assert (large.status_code, large.get_json(force=True)["code"]) == (413, "payload_too_large")


def test_a_foreign_event_is_a_clear_answer(app: App) -> None:
    body = (DATA / "ce_structured_ok.json").read_bytes()
    answer = app.client.post("/", data=body, headers={"content-type": "application/cloudevents+json"})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "kind", ["com.example.picture", "dev.wakeswap.intake.rejected.v1", "dev.wakeswap.intake.completed"]
)
def test_data_of_the_right_shape_under_another_type_is_refused(app: App, kind: str) -> None:
    answer = app.deliver(replace(event(), type=kind))
    assert (answer.status_code, answer.get_json(force=True)["context"]) == (400, {"attribute": "type"})
    assert app.names("tenants/") == []

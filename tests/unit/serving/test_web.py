"""Which requests are let in, and what all others are told."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest
from flask import Response

from shared.serving import web
from tests.services.held import main as held
from tests.unit.serving.support import App, until


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App("relay", tmp_path, WAKESWAP_MAX_BODY_BYTES="4096")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("POST", "/health", 404, "not_found"),
        ("GET", "/", 405, "method_not_allowed"),
        ("DELETE", "/", 405, "method_not_allowed"),
        ("GET", "/wake", 405, "method_not_allowed"),
        ("POST", "/health/liveness", 405, "method_not_allowed"),
    ],
)
def test_wrong_paths_and_methods_are_problems(app: App, method: str, path: str, status: int, code: str) -> None:
    answer = app.client.open(path, method=method)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.get_json(force=True)
    assert (body["status"], body["code"]) == (status, code)
    assert ("Allow" in answer.headers) == (status == 405)


def test_wake_answers_at_once_and_does_nothing(app: App) -> None:
    answer = app.client.post("/wake", data=b"anything")
    assert (answer.status_code, answer.data) == (204, b"")
    assert app.names("tenants/") == []


def test_metrics_count_what_was_answered(app: App) -> None:
    app.run("http")
    app.run("raise:ModelError", "e-2")
    answer = app.client.get("/metrics")
    assert 'wakeswap_events_total{code="done",stage="relay"} 1.0' in answer.text
    assert 'wakeswap_events_total{code="model_unavailable",stage="relay"} 1.0' in answer.text
    assert 'wakeswap_event_seconds_count{stage="relay"} 2.0' in answer.text


def test_cold_02_more_events_than_slots_are_refused_with_retry_after(tmp_path: Path) -> None:
    app = App("held", tmp_path, WAKESWAP_CONCURRENCY="2")
    held.go.clear()
    held.started.clear()
    answers = []
    workers = [threading.Thread(target=lambda n=n: answers.append(app.run("http", f"e-{n}"))) for n in range(2)]
    for worker in workers:
        worker.start()
    until(lambda: len(held.started) == 2)
    surplus = [app.run("http", f"s-{number}") for number in range(50)]
    assert {(answer.status_code, answer.headers["Retry-After"]) for answer in surplus} == {(503, "1")}
    assert {answer.get_json(force=True)["code"] for answer in surplus} == {"overloaded"}
    assert app.client.get("/health/readiness").status_code == 200
    assert app.client.post("/wake").status_code == 204
    held.go.set()
    for worker in workers:
        worker.join()
    assert [answer.status_code for answer in answers] == [200, 200]
    assert app.run("http", "s-0").status_code == 200, "the slots are free again"


def test_a_refused_request_takes_no_slot(app: App) -> None:
    for number in range(5):
        assert app.run("bug:x", f"e-{number}").status_code == 500
        assert app.client.get("/nowhere").status_code == 404
    assert app.run("http").status_code == 200


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(errno.ENOSPC, 503, "unavailable"), (errno.EMFILE, 503, "unavailable"), (errno.ENOENT, 500, "internal_error")],
)
def test_a_machine_without_room_says_later_and_a_bug_does_not(error: int, status: int, code: str) -> None:
    def spool() -> Response:
        raise OSError(error, os.strerror(error), "/tmp/secret-name")

    app = web.build(4096)
    app.add_url_rule("/", view_func=spool)
    answer = app.test_client().get("/")
    assert (answer.status_code, answer.get_json(force=True)["code"]) == (status, code)
    assert ("Retry-After" in answer.headers) == (status == 503)
    assert "secret-name" not in answer.text

"""Loading, ready, stopping, as probes and senders see it. Real signals and processes: tests/cold_start."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from shared.errors import ConfigError, GpuFaultError, GpuMemoryError, ModelError, ModelNotFoundError, WakeswapError
from shared.serving import lifecycle
from shared.serving.lifecycle import SETUP_FAILED, Lifecycle
from tests.services.failing import main as failing
from tests.services.held import main as held
from tests.unit.serving.support import App, until


def test_cold_01_nothing_is_let_in_before_setup_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARM_SECONDS", "0.3")
    app = App("heavy", tmp_path)
    seen = []

    def ready() -> bool:
        probe = app.client.get("/health/readiness")
        seen.append((probe.status_code, app.client.get("/health/liveness").status_code))
        return probe.status_code == 200

    early = app.run("http")
    assert (early.status_code, early.get_json(force=True)["code"]) == (503, "model_loading")
    assert early.headers["Retry-After"] == "1"
    assert app.client.post("/wake", data=b"{}").status_code == 204
    until(ready)
    assert set(seen) == {(503, 200), (200, 200)}
    assert app.run("http").status_code == 200


@pytest.mark.parametrize(
    ("error", "code", "cause"),
    [
        (ModelNotFoundError("No place has it."), "model_not_found", None),
        (ConfigError("The catalogue is wrong."), "setup_failed", "config_error"),
        (ZeroDivisionError("a secret"), "setup_failed", None),
    ],
)
def test_a_failed_setup_is_shown_and_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, cause: str | None
) -> None:
    monkeypatch.setattr(lifecycle, "SHOWN_SECONDS", 0.3)
    monkeypatch.setattr(failing, "failure", [error])
    app = App("failing", tmp_path)
    until(lambda: app.client.get("/health/readiness").get_json(force=True)["code"] == code)
    probe = app.client.get("/health/readiness")
    assert probe.status_code == 503
    assert probe.get_json(force=True).get("context", {}).get("cause") == cause
    assert b"secret" not in probe.data
    event = app.run("http")
    assert (event.status_code, event.get_json(force=True)["code"]) == (503, code)
    assert int(event.headers["Retry-After"]) >= 10
    assert app.client.get("/health/liveness").status_code == 200
    assert app.left == []
    until(lambda: app.left == [SETUP_FAILED])


def test_a_stopping_process_takes_nothing_new_and_finishes_what_it_has(tmp_path: Path) -> None:
    app = App("held", tmp_path, WAKESWAP_CONCURRENCY="2")
    held.go.clear()
    held.started.clear()
    answers = []
    worker = threading.Thread(target=lambda: answers.append(app.run("http")))
    worker.start()
    until(lambda: held.started)
    app.lifecycle.stop()
    refused = app.run("http", "e-2")
    assert (refused.status_code, refused.get_json(force=True)["code"]) == (503, "stopping")
    assert refused.headers["Retry-After"]
    assert app.client.get("/health/readiness").status_code == 503
    assert app.client.get("/health/liveness").status_code == 200
    held.go.set()
    worker.join()
    assert answers[0].status_code == 200


def test_what_does_not_end_in_time_is_handed_back(tmp_path: Path) -> None:
    app = App("held", tmp_path, WAKESWAP_CONCURRENCY="2", WAKESWAP_LEASE_SECONDS="3600")
    held.go.clear()
    held.started.clear()
    answers = []
    worker = threading.Thread(target=lambda: answers.append(app.run("http")))
    worker.start()
    until(lambda: held.started)
    app.lifecycle.stop(at_once=True)
    worker.join(5)
    assert answers[0].status_code == 503
    assert answers[0].get_json(force=True)["code"] == "stopping"
    held.go.set()
    other = App("held", tmp_path)
    assert other.run("http").status_code == 200, "the lease is free for the next process"


def test_a_deadline_ends_with_the_process() -> None:
    life = Lifecycle(100)
    life.stop()
    assert life.ends < float("inf")
    life.stop(at_once=True)
    until(lambda: life.run(lambda: 1) == 1)


@pytest.mark.parametrize(("error", "times"), [(GpuMemoryError, 1), (GpuFaultError, 1), (ModelError, 0)])
def test_cold_01_an_error_that_spoils_the_process_ends_its_readiness_and_has_it_replaced(
    error: type[WakeswapError], times: int
) -> None:
    replaced: list[bool] = []
    life = Lifecycle(100, replace=lambda: replaced.append(True))
    life.ready()

    def work() -> None:
        raise error

    with pytest.raises(error):
        life.run(work)
    assert len(replaced) == times
    if not times:
        life.check()
        return
    life.stop()  # what the replacement does: the reason stays to be seen
    with pytest.raises(error):
        life.check()

"""A stage at work keeps its job's slot, the job's end frees it, and a pause ends when the process has to."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from shared.errors import StoreUnavailableError
from shared.jobs import slots
from shared.serving.doors import DoorReceiver
from shared.serving.idempotency import Ledger
from shared.serving.outcome import Outcomes
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.tenancy.tenant import Tenant
from tests.unit.serving.support import JOB, App, until
from tests.unit.serving.test_outcome import RESULT

SECONDS = 900.0


def taken(store: LocalStore, ago: float) -> None:
    slots.take(store, Tenant("demo"), JOB, batch=False, now=time.time() - ago, seconds=SECONDS)


def left(store: LocalStore) -> float:
    """Seconds of the lease."""
    (slot,) = json.loads(store.get(keys.slots("demo"))[0])["slots"]
    return float(slot["expires"]) - time.time()


@pytest.mark.parametrize(("ago", "low", "high"), [(100, 700, 801), (600, 850, 901)])
def test_a_stage_renews_the_slot_when_half_is_gone(tmp_path: Path, ago: float, low: float, high: float) -> None:
    app = App("relay", tmp_path)
    taken(app.store, ago)
    assert app.run("http").status_code == 200
    assert low < left(app.store) < high


def test_a_job_without_a_slot_works_on_and_gets_none(tmp_path: Path) -> None:
    app = App("relay", tmp_path)
    assert app.run("http").status_code == 200
    assert app.names("tenants/demo/slots/") == []


def test_the_beat_goes_on_after_a_store_that_was_away(tmp_path: Path) -> None:
    calls: list[int] = []

    def beat() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise StoreUnavailableError

    lease = Ledger(LocalStore(tmp_path), seconds=0.06).take("system/work/x/1.json")
    with lease.kept(beat):  # type: ignore[union-attr]
        until(lambda: len(calls) >= 3, 60)


def test_the_end_of_a_job_frees_its_slot_also_where_the_store_was_away_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    taken(store, 0)
    with monkeypatch.context() as patch:

        def away(*_: object) -> None:
            raise StoreUnavailableError

        patch.setattr(slots, "release", away)
        assert Outcomes(store, "publish").settle("demo", RESULT, "c1"), "the end is told all the same"
    assert slots.holds(store, "demo", JOB)
    assert Outcomes(store, "publish").settle("demo", RESULT, "c1")
    assert not slots.holds(store, "demo", JOB)


def test_a_pause_ends_at_once_when_the_process_has_to_end(tmp_path: Path) -> None:
    app = App("door", tmp_path)
    receiver = next(
        cell.cell_contents
        for cell in app.flask.view_functions["deliver /"].__closure__ or ()
        if isinstance(cell.cell_contents, DoorReceiver)
    )
    ctx = receiver.context()
    assert ctx.pause(0.01)
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(ctx.pause(600)))
    waiting.start()
    app.lifecycle.stop()
    waiting.join(60)
    assert answers == [False]


def test_a_job_that_waits_for_a_person_has_no_slot(tmp_path: Path) -> None:
    app = App("asking", tmp_path)
    taken(app.store, 0)
    assert app.run("http").status_code == 204
    assert not slots.holds(app.store, "demo", JOB)

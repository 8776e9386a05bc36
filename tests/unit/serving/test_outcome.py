"""A job ends exactly once; a cancelled one does not end at all."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.events.payloads import Failure, Payload, Rejection, Result
from shared.serving.outcome import Outcomes
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.protocol import ObjectInfo
from tests.unit.serving.support import JOB, PICTURE, job

RESULT = Result(JOB, PICTURE, 4, 3, (), "file:///r.png", "2030-01-01T00:00:00Z")
REJECTION = Rejection(JOB, "detect", "no_face_in_source", "No face.", 422)
FAILURE = Failure(JOB, "swap", "model_unavailable", "Gave up.", "e-9")


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def ending(store: LocalStore) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(store.get(keys.job("demo", JOB, "outcome.json"))[0])
    return loaded


def test_the_end_is_on_record_with_its_type(store: LocalStore) -> None:
    assert Outcomes(store, "publish").settle("demo", RESULT, "c1")
    assert ending(store)["type"] == "dev.wakeswap.publish.completed.v1"
    assert ending(store)["data"]["width"] == 4  # type: ignore[index]


def test_what_is_no_end_is_not_on_record(store: LocalStore) -> None:
    assert Outcomes(store, "moderate").settle("demo", job(), "c1")
    assert store.list("tenants/").objects == ()


@pytest.mark.parametrize(
    ("first", "second", "sent"),
    [
        (RESULT, RESULT, False),
        (RESULT, REJECTION, False),
        (RESULT, FAILURE, False),
        (REJECTION, RESULT, False),
        (REJECTION, FAILURE, False),
        (FAILURE, FAILURE, False),
        (FAILURE, RESULT, True),
        (FAILURE, REJECTION, True),
    ],
)
def test_a_second_end_from_another_cause(store: LocalStore, first: Payload, second: Payload, sent: bool) -> None:
    outcomes = Outcomes(store, "publish")
    assert outcomes.settle("demo", first, "c1")
    assert outcomes.settle("demo", second, "c2") == (second if sent else None)
    kept = second if sent else first
    assert str(ending(store)["type"]).split(".")[-2] == kept.outcome


def test_the_same_cause_sends_the_end_that_is_on_record_again(store: LocalStore) -> None:
    outcomes = Outcomes(store, "publish")
    assert outcomes.settle("demo", RESULT, "c1") == RESULT
    before = ending(store)
    later = replace(RESULT, link="file:///later.png")
    assert outcomes.settle("demo", later, "c1") == RESULT
    assert outcomes.settle("demo", REJECTION, "c1") == RESULT
    assert ending(store) == before


def test_a_cancelled_job_has_no_end(store: LocalStore) -> None:
    store.create(keys.job("demo", JOB, "cancelled.json"), b"{}")
    outcomes = Outcomes(store, "publish")
    assert outcomes.cancelled("demo", JOB)
    assert not outcomes.settle("demo", RESULT, "c1")
    assert len(store.list(keys.job("demo", JOB)).objects) == 1


def test_of_many_ends_at_once_one_is_sent(store: LocalStore) -> None:
    outcomes, gate, sent = Outcomes(store, "publish"), threading.Barrier(6), []

    def end(cause: str) -> None:
        gate.wait()
        if outcomes.settle("demo", RESULT, cause):
            sent.append(cause)

    threads = [threading.Thread(target=end, args=(f"c{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sent == [ending(store)["cause"]]


def test_a_cancelled_job_does_not_go_on_and_nothing_made_since_stays(store: LocalStore) -> None:
    outcomes = Outcomes(store, "publish")
    store.create(keys.job("demo", JOB, "cancelled.json"), b"{}")
    store.put(keys.job("demo", JOB, "swap", "pixels.npy"), b"late")
    store.put(keys.result("demo", f"{JOB}.png"), b"late")
    other = store.put(keys.result("demo", f"{JOB}-2.png"), b"another job's").key
    assert not outcomes.settle("demo", job(), "c1")
    assert [info.key for info in store.list("tenants/demo/").objects] == [
        keys.job("demo", JOB, "cancelled.json"),
        other,
    ]


class CancelledMeanwhile(LocalStore):
    """The owner cancels in the moment when the end is written."""

    def create(self, key: str, *args: Any, **more: Any) -> ObjectInfo:
        info = super().create(key, *args, **more)
        if key.endswith("outcome.json"):
            super().create(keys.job("demo", JOB, "cancelled.json"), b"{}")
        return info


def test_a_cancel_that_comes_with_the_end_wins(tmp_path: Path) -> None:
    store = CancelledMeanwhile(tmp_path)
    store.put(keys.result("demo", f"{JOB}.png"), b"made")
    assert not Outcomes(store, "publish").settle("demo", RESULT, "c1")
    assert store.list("tenants/demo/results/").objects == ()


@pytest.mark.parametrize(
    "damage", [b"", b"\x00" * 20, b"[]", b'{"type": 5}', b'{"type": "x", "cause": "c", "data": {}}']
)
def test_an_end_that_cannot_be_read_is_written_anew(store: LocalStore, damage: bytes) -> None:
    store.put(keys.job("demo", JOB, "outcome.json"), damage)
    assert Outcomes(store, "publish").settle("demo", RESULT, "c1")
    assert ending(store)["cause"] == "c1"

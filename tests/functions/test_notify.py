"""notify through the harness, against a real webhook receiver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks import Webhook as Verifier

from shared.events.payloads import Failure, ObjectRef, Rejection, Result
from tests.unit.serving.support import JOB, App, event
from tests.unit.webhooks.receiver import SECRET, Receiver, running

IMAGE = ObjectRef("tenants/demo/results/a.png", "0" * 64, 5, "image/png")
RESULT = Result(JOB, IMAGE, 4, 3, (), "https://x.example/a", "2030-01-01T00:00:00Z")
REJECTION = Rejection(JOB, "detect", "no_face_in_source", "No face.", 422)
FAILURE = Failure(JOB, "swap", "model_invalid", "Kept.", "e-1")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running() as server:
        yield server


def stage(root: Path, url: str, *, local: bool = True) -> App:
    tenants = json.dumps({"demo": {"webhook": {"url": url, "allow_local": local} if url else {}}})
    return App("notify", root, package="functions", WAKESWAP_TENANTS=tenants, WAKESWAP_WEBHOOK_SECRETS=f"demo={SECRET}")


@pytest.mark.parametrize(
    ("payload", "origin", "name"),
    [(RESULT, "publish", "completed"), (REJECTION, "detect", "rejected"), (FAILURE, "dead_letter", "failed")],
)
def test_each_end_is_announced_once_and_signed(
    tmp_path: Path, receiver: Receiver, payload: Result | Rejection | Failure, origin: str, name: str
) -> None:
    app = stage(tmp_path, receiver.url())
    for _ in range(3):
        assert app.deliver(event(payload, stage=origin)).status_code == 204
    ((_, headers, body),) = receiver.seen
    told = Verifier(SECRET).verify(body, headers)
    assert headers["webhook-id"] == f"{JOB}.{name}"
    assert (told["type"], told["data"]["job"]) == (f"job.{name}", JOB)
    assert told["timestamp"].endswith("Z")


def test_no_webhook_nothing_to_do(tmp_path: Path) -> None:
    assert stage(tmp_path, "").deliver(event(RESULT, stage="publish")).status_code == 204


def test_receiver_that_is_down_gets_the_same_message_again(tmp_path: Path, receiver: Receiver) -> None:
    app = stage(tmp_path, receiver.url())
    receiver.status = 503
    first = app.deliver(event(RESULT, stage="publish"))
    assert (first.status_code, first.get_json(force=True)["code"]) == (503, "unavailable")
    receiver.status = 200
    assert app.deliver(event(RESULT, stage="publish")).status_code == 204
    assert len({headers["webhook-id"] for _, headers, _ in receiver.seen}) == 1
    assert len(receiver.seen) == 2


def test_receiver_that_does_not_want_it_is_not_asked_again_and_no_event_says_so(
    tmp_path: Path, receiver: Receiver
) -> None:
    app = stage(tmp_path, receiver.url())
    receiver.status = 410
    for _ in range(2):
        answer = app.deliver(event(RESULT, stage="publish"))
        assert (answer.status_code, answer.data) == (204, b"")
    assert len(receiver.seen) == 1
    refused = json.loads(app.store.get(f"tenants/demo/jobs/{JOB}/notify/refused.completed.json")[0])
    assert refused == {"detail": "The webhook answered 410.", "status": 410}
    assert b"wakeswap_webhooks_refused_total 1.0" in app.client.get("/metrics").data


@pytest.mark.parametrize("url", ["https://10.0.0.1/", "https://localhost/", "https://169.254.169.254/latest"])
def test_sec_04_never_to_a_private_address(tmp_path: Path, url: str) -> None:
    app = stage(tmp_path, url, local=False)
    assert app.deliver(event(RESULT, stage="publish")).status_code == 204
    assert app.names(f"tenants/demo/jobs/{JOB}/notify/refused") != []

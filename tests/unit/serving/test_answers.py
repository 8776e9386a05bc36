"""CE-06: every kind of fault has the answer with which a Knative broker does the right thing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared import errors, rejections
from shared.errors import RejectedError, RequestError, TransientError, WakeswapError
from shared.serving.answers import problem, refusal
from tests.unit.serving.support import JOB, App

SENT_AGAIN = {404, 408, 409, 429}
BY_NAME = {
    name: value
    for name, value in {**vars(errors), **vars(rejections)}.items()
    if isinstance(value, type) and issubclass(value, WakeswapError)
}
ALL = list(BY_NAME.values())


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App("relay", tmp_path)


@pytest.mark.parametrize(
    "name", ["MediaTruncatedError", "ObjectGoneError", "NoFaceInSourceError", "ObjectChangedError"]
)
def test_ce_06_the_callers_fault_is_delivered_with_one_rejected_event(app: App, name: str) -> None:
    answer = app.run(f"raise:{name}")
    assert answer.status_code == 200
    assert answer.headers["ce-type"] == "dev.wakeswap.relay.rejected.v1"
    assert answer.headers["ce-subject"] == JOB
    error = BY_NAME[name]
    data = answer.get_json()
    assert (data["code"], data["status"], data["stage"], data["job"]) == (error.code, error.status, "relay", JOB)
    assert app.run(f"raise:{name}").data == answer.data


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("QuotaExceededError", 429),
        ("ModelLoadingError", 503),
        ("StoreUnavailableError", 503),
        ("CacheFullError", 503),
        ("ModelInvalidError", 503),
        ("BrokerUnavailableError", 503),
        ("DeadlineExceededError", 503),
    ],
)
def test_ce_06_what_may_pass_is_sent_again_later(app: App, name: str, status: int) -> None:
    answer = app.run(f"raise:{name}")
    assert answer.status_code == status
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.get_json(force=True)["code"] == BY_NAME[name].code
    again = app.run("http")
    assert again.status_code == 200, "the lease of a failed try must not stop the next"


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("InvalidOptionError", 422),
        ("NotFoundError", 400),  # 404 would be sent again
        ("InvalidCloudEventError", 400),
        ("ForbiddenError", 403),
    ],
)
def test_ce_06_what_can_never_work_goes_to_dead_letter_at_once(app: App, name: str, status: int) -> None:
    answer = app.run(f"raise:{name}")
    assert answer.status_code == status
    assert "Retry-After" not in answer.headers
    assert "ce-id" not in answer.headers


def test_ce_06_a_bug_is_sent_again_and_says_nothing_of_itself(app: App, caplog: pytest.LogCaptureFixture) -> None:
    answer = app.run("bug:secret-of-this-machine")
    logged = [record for record in caplog.records if record.exc_info]
    assert len(logged) == 1, "the traceback is in the log, once"
    assert answer.status_code == 500
    assert answer.get_json(force=True)["code"] == "internal_error"
    assert b"secret-of-this-machine" not in answer.data
    assert b"Traceback" not in answer.data
    assert app.run("http").status_code == 200


def test_ce_06_unparsable_events_are_400(app: App) -> None:
    answer = app.client.post("/", data=b"\x00\x01", headers={"content-type": "application/cloudevents+json"})
    assert answer.status_code == 400
    assert answer.get_json(force=True)["code"] == "invalid_cloudevent"


def test_no_permanent_fault_has_a_status_that_a_broker_sends_again() -> None:
    for kind in ALL:
        status = refusal(kind("x")).status
        if issubclass(kind, RequestError | RejectedError):
            assert 400 <= status < 500, kind
            assert status not in SENT_AGAIN, kind
        if issubclass(kind, TransientError):
            assert status >= 500 or status in SENT_AGAIN, kind


def test_a_problem_is_rfc_9457() -> None:
    reply = problem(rejections.FaceTooSmallError("17 pixels.", context={"size": 17}))
    assert reply.status == 422
    assert json.loads(reply.body) == {
        "type": "urn:wakeswap:problem:face_too_small",
        "title": "The face is too small",
        "status": 422,
        "detail": "17 pixels.",
        "code": "face_too_small",
        "context": {"size": 17},
    }


def test_every_code_is_said_by_one_class_only() -> None:
    codes = [kind.code for kind in ALL if "code" in vars(kind)]
    assert len(codes) == len(set(codes))

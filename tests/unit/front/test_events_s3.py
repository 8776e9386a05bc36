"""POST /events/s3: bucket notifications without a broker between."""

from __future__ import annotations

import json
import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from tests.unit.front.api import TOKEN, Api, code
from tests.unit.jobs.world import event_file, picture

INBOX = "tenants/demo/inbox/"


def notify(api: Api, body: Any, token: str = TOKEN, kind: str = "application/json") -> TestResponse:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return api.client.post("/events/s3", data=data, content_type=kind, headers={"Authorization": f"Bearer {token}"})


def record(key: str) -> dict[str, Any]:
    body = event_file("minio_put.json")
    body["Records"][0]["s3"]["bucket"]["name"] = "wakeswap"
    body["Records"][0]["s3"]["object"]["key"] = key
    return dict(body)


def test_door_is_closed_without_a_token(tmp_path: Path) -> None:
    assert code(notify(Api(tmp_path, token=""), {})) == (403, "forbidden")


@pytest.mark.parametrize("token", ["", "wrong", "key-of-demo-0123456789", TOKEN + "x"])
def test_token_is_checked(api: Api, token: str) -> None:
    response = notify(api, {}, token)
    assert code(response) == (401, "unauthorized")
    assert response.headers["WWW-Authenticate"] == "Bearer"


def test_s3_06_minio_webhook_makes_a_job(api: Api) -> None:
    api.world.put(INBOX + "my set/source.jpg", picture(1))
    api.world.put(INBOX + "my set/target.jpg", picture(2))
    response = notify(api, record("tenants%2Fdemo%2Finbox%2Fmy%20set%2Fsource.jpg"))
    assert (response.status_code, response.data) == (202, b"")
    assert [job.target.key for job in api.jobs] == [INBOX + "my set/target.jpg"]


@pytest.mark.parametrize(
    "name", ["s3_test_event.json", "sns_wrapped_test_event.json", "s3_output_prefix_recursion.json"]
)
def test_s3_03_and_s3_07_nothing_to_do(api: Api, name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        response = notify(api, event_file(name), kind="text/plain; charset=UTF-8")
    assert (response.status_code, response.data) == (204, b"")
    assert api.broker.events == []
    assert {record.levelno for record in caplog.records} <= {logging.DEBUG, logging.INFO}


def test_s3_03_handshake_is_refused_and_its_address_never_called(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: called.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: called.append(address))
    assert code(notify(api, event_file("sns_subscription_confirmation.json"))) == (403, "forbidden")
    assert called == []
    assert api.broker.events == []


def test_s3_08_traversal_is_answered_without_a_server_error(api: Api) -> None:
    response = notify(api, record("tenants%2Fdemo%2Finbox%2F..%2F..%2Facme%2Finbox%2Fa.jpg"))
    assert response.status_code == 202
    assert api.jobs == []
    assert len(api.broker.events) == 1


def test_s3_08_the_case_file_is_answered_without_a_server_error(api: Api) -> None:
    body = json.dumps(event_file("s3_traversal_keys.json")).replace("faceswap-in", "wakeswap")
    for old, new in (("t-acme/in/", INBOX), ("t-globex/in/", "tenants/acme/inbox/")):
        body = body.replace(old, new)
    assert notify(api, body.encode()).status_code in (202, 204)
    assert api.jobs == []
    assert {entry.tenant for entry in api.broker.events} <= {"demo"}


def test_s3_09_early_upload_is_asked_for_again(api: Api) -> None:
    body = record("tenants%2Flate%2Finbox%2Fa%2Fsource.jpg")
    body["Records"][0]["eventTime"] = "2027-01-15T07:59:50Z"  # ten seconds before the world's now
    response = notify(api, body)
    assert code(response) == (503, "tenant_not_ready")
    assert response.headers["Retry-After"] == "5"


@pytest.mark.parametrize("body", [b"", b"no json", b"7", b"null", b"[" * 100_000])
def test_what_is_no_notification(api: Api, body: bytes) -> None:
    assert code(notify(api, body))[0] == 400


def test_too_large(api: Api) -> None:
    assert code(notify(api, b" " * 100_001)) == (413, "payload_too_large")


def test_broker_down_is_asked_for_again(api: Api) -> None:
    api.world.put(INBOX + "a/source.jpg", picture(1))
    api.world.put(INBOX + "a/target.jpg", picture(2))
    api.broker.down = True
    assert code(notify(api, record("tenants%2Fdemo%2Finbox%2Fa%2Fsource.jpg"))) == (503, "broker_unavailable")
    api.broker.down = False
    assert notify(api, record("tenants%2Fdemo%2Finbox%2Fa%2Fsource.jpg")).status_code == 202
    assert len(api.jobs) == 1

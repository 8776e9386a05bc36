"""The field cases CE-02 and CE-05 as a stage answers them over HTTP: status, code, and the attribute by its name."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from shared.events.codec import encode_structured
from tests.signing import signed
from tests.unit.serving.support import JOB, App, event

DATA = Path(__file__).parents[2] / "data" / "event"
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App("relay", tmp_path)


def send(app: App, body: bytes, kind: str = STRUCTURED) -> TestResponse:
    return app.client.post("/", data=body, content_type=kind)


def untouched(app: App) -> bool:
    return app.names("tenants/") == [] and app.names("system/") == []


@pytest.mark.parametrize("name", ["id", "source", "type", "specversion"])
def test_ce_02_missing_attribute_is_400_and_named(app: App, name: str) -> None:
    answer = send(app, (DATA / f"ce_missing_{name}.json").read_bytes())
    problem = answer.get_json(force=True)
    assert (answer.status_code, problem["code"]) == (400, "invalid_cloudevent")
    assert problem["context"]["attribute"] == name
    assert name in problem["detail"]
    assert untouched(app)


@pytest.mark.parametrize(
    ("name", "code"),
    [("ce_empty_id.json", "invalid_cloudevent"), ("ce_specversion_0_3.json", "unsupported_specversion")],
)
def test_ce_02_empty_id_and_other_version_are_400(app: App, name: str, code: str) -> None:
    answer = send(app, (DATA / name).read_bytes())
    assert (answer.status_code, answer.get_json(force=True)["code"]) == (400, code)


def test_ce_02_binary_event_without_a_header_or_a_body_is_400(app: App) -> None:
    head, _, body = (DATA / "ce_binary_empty_body.http").read_bytes().replace(b"\r\n", b"\n").partition(b"\n\n")
    headers = dict(line.split(": ", 1) for line in head.decode().splitlines()[1:])
    headers |= {"ce-tenantid": "demo", "ce-subject": JOB, "ce-type": event().type}
    answer = app.client.post("/", headers=headers, data=body)
    assert (answer.status_code, answer.get_json(force=True)["code"]) == (400, "empty_data")
    del headers["ce-id"]
    answer = app.client.post("/", headers=headers, data=b"{}")
    assert answer.get_json(force=True)["context"]["attribute"] == "id"


@pytest.mark.parametrize("name", ["ce_batch.json", "ce_batch_empty.json"])
def test_ce_05_batches_are_415_and_nothing_of_them_is_done(app: App, name: str) -> None:
    answer = send(app, (DATA / name).read_bytes(), BATCH)
    assert (answer.status_code, answer.get_json(force=True)["code"]) == (415, "batch_unsupported")
    assert untouched(app)


@pytest.mark.parametrize("name", ["ce_data_base64_bad.json", "ce_data_and_data_base64.json"])
def test_ce_05_bad_base64_and_data_twice_are_400(app: App, name: str) -> None:
    answer = send(app, (DATA / name).read_bytes())
    assert (answer.status_code, answer.get_json(force=True)["code"]) == (400, "invalid_cloudevent")


def test_ce_05_base64_and_utf_16_give_the_same_job(app: App) -> None:
    """Three bodies, one event: done once, answered alike."""
    document = json.loads(encode_structured(signed(event()))[1])
    encoded = {**document, "data_base64": base64.b64encode(json.dumps(document["data"]).encode()).decode()}
    del encoded["data"]
    answers = [
        send(app, json.dumps(document).encode()),
        send(app, json.dumps(encoded).encode()),
        send(app, json.dumps(document).encode("utf-16"), STRUCTURED + "; charset=utf-16"),
    ]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len({answer.data for answer in answers}) == 1
    assert len([key for key in app.names("tenants/") if "/work." in key]) == 1


def test_ce_05_the_utf_16_file_is_no_server_error(app: App) -> None:
    body = base64.b64decode((DATA / "ce_utf16.json.b64").read_bytes())
    for charset in ("", "; charset=utf-16", "; charset=utf-8", "; charset=nonsense"):
        assert send(app, body, STRUCTURED + charset).status_code in (400, 415, 422)

"""Stages that take raw events: what they yield is published before they go on, and never twice by our doing."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.events.codec import encode_binary
from shared.events.event import Event
from shared.serving.doors import bucket_of
from shared.storage import keys
from tests.unit.serving.support import App
from tests.unit.serving.test_emitter import broker

PING = "dev.knative.sources.ping"


def ping(*names: str, event_id: str = "p-1") -> tuple[dict[str, str], bytes]:
    source = "/apis/v1/namespaces/default/pingsources/nightly"
    return encode_binary(Event(event_id, source, PING, datacontenttype="application/json", data=list(names)))


def test_each_accepted_job_is_one_event_of_this_stage(tmp_path: Path) -> None:
    with broker() as server:
        app = App("door", tmp_path, K_SINK=server.address)
        headers, body = ping("job-000000a1", "job-000000a2")
        answer = app.client.post("/", headers=headers, data=body)
        again = app.client.post("/", headers=headers, data=body)
    assert (answer.status_code, answer.data) == (202, b"")
    assert (again.status_code, again.data) == (202, b"")
    sent = [headers for _, headers, _ in server.received]
    assert [entry["ce-subject"] for entry in sent] == ["job-000000a1", "job-000000a2"]
    assert {entry["ce-type"] for entry in sent} == {"dev.wakeswap.door.completed.v1"}
    assert {entry["ce-tenantid"] for entry in sent} == {"demo"}
    assert app.names(keys.system("work", "door")) != []


def test_the_tenants_policy_says_when_its_jobs_wake_the_stages_to_come(tmp_path: Path) -> None:
    with broker() as server:
        for number, policy in enumerate(("{}", '{"policy": {"wake": "after-moderation"}}')):
            tenants = f'{{"demo": {policy}}}'
            app = App("door", tmp_path / str(number), K_SINK=server.address, WAKESWAP_TENANTS=tenants)
            headers, body = ping("job-000000a1")
            assert app.client.post("/", headers=headers, data=body).status_code == 202
    assert [headers["ce-wake"] for _, headers, _ in server.received] == ["ahead", "after-moderation"]


def test_a_door_that_yields_nothing_is_204(tmp_path: Path) -> None:
    with broker() as server:
        headers, body = ping()
        answer = App("door", tmp_path, K_SINK=server.address).client.post("/", headers=headers, data=body)
    assert (answer.status_code, server.received) == (204, [])


def test_a_broker_that_fails_midway_gets_all_of_it_again_under_the_same_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with broker(202, 400) as server:
        app = App("door", tmp_path, K_SINK=server.address)
        headers, body = ping("job-000000a1", "job-000000a2")
        failed = app.client.post("/", headers=headers, data=body)
        assert (failed.status_code, failed.get_json(force=True)["code"]) == (503, "broker_unavailable")
        assert app.client.post("/", headers=headers, data=body).status_code == 202
    ids = [headers["ce-id"] for _, headers, _ in server.received]
    assert ids[:2] == ids[2:]
    assert ids[0] != ids[1]


def test_a_stage_with_a_sink_publishes_its_reply_there_once(tmp_path: Path) -> None:
    with broker() as server:
        app = App("relay", tmp_path, K_SINK=server.address)
        answers = [app.run("http") for _ in range(3)]
    assert {(answer.status_code, answer.data) for answer in answers} == {(202, b"")}
    assert [headers["ce-type"] for _, headers, _ in server.received] == ["dev.wakeswap.relay.completed.v1"]


def test_without_a_sink_nothing_is_accepted(tmp_path: Path) -> None:
    headers, body = ping("job-000000a1")
    assert App("door", tmp_path).client.post("/", headers=headers, data=body).status_code == 503


def test_what_a_door_refuses_goes_to_dead_letter(tmp_path: Path) -> None:
    headers, _ = ping()
    answer = App("door", tmp_path).client.post("/", headers=headers, data=b'{"a": 1}')
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:.wakeswap/objects", ("wakeswap", "")),
        ("s3://photos", ("photos", "")),
        ("s3://photos/", ("photos", "")),
        ("s3://photos/faces/eu", ("photos", "faces/eu/")),
    ],
)
def test_notifications_name_the_bucket_of_the_store(url: str, expected: tuple[str, str]) -> None:
    assert bucket_of(url) == expected

"""Events that nobody here made: refused at every door before a tenant's data is touched, and nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from shared.errors import ConfigError
from shared.events import proof
from shared.events.codec import STRUCTURED, decode, encode_binary, encode_structured
from shared.events.event import Event
from shared.events.payloads import Rejection
from shared.serving.app import create
from shared.storage import keys
from tests.signing import EVENT_KEYS, signed
from tests.unit.serving.support import JOB, App, event, job
from tests.unit.serving.test_emitter import broker

STAGES = sorted(path.parent.name for path in (Path(__file__).parents[3] / "functions").glob("*/main.py"))
TENANTS = '{"demo": {}, "other": {}}'
OLD = "old=fedcba9876543210fedcba9876543210"
SENT = signed(event())


def with_extensions(sent: Event, **changed: str) -> Event:
    return replace(sent, extensions={**sent.extensions, **changed})


FORGED: dict[str, Event] = {
    "no proof": event(),
    "another tenant": with_extensions(SENT, tenantid="other"),
    "a tenant that does not exist": with_extensions(SENT, tenantid="stranger"),
    "no tenant": replace(SENT, extensions={"proof": SENT.extensions["proof"]}),
    "changed data": replace(SENT, data={**event(job("upload")).data}),  # type: ignore[dict-item]
    "another job": replace(SENT, subject="job-00000002", data=event(job(job_id="job-00000002")).data),
    "another event's proof": with_extensions(event(event_id="e-2"), proof=str(SENT.extensions["proof"])),
    "another job's proof": with_extensions(event(job(job_id="job-00000002")), proof=str(SENT.extensions["proof"])),
    "a key that is gone": proof.read(OLD).sign(event()),
    "a key nobody has": with_extensions(SENT, proof="none." + "0" * 64),
    "a key under a known name": proof.read("test=" + "f" * 32).sign(event()),
    "an empty digest": with_extensions(SENT, proof="test."),
    "another stage's name": replace(SENT, source="/wakeswap/moderate"),
    "more than it was": with_extensions(SENT, enhance="true"),
}


def everything(app: App) -> list[str]:
    return [entry.key for entry in app.store.list("").objects]


def code(answer: TestResponse) -> tuple[int, str]:
    return answer.status_code, str(answer.get_json(force=True)["code"])


def post(app: App, sent: Event, path: str = "/") -> TestResponse:
    headers, body = encode_binary(sent)
    return app.client.post(path, headers=headers, data=body)


@pytest.mark.parametrize("name", FORGED)
@pytest.mark.parametrize("structured", [False, True], ids=["binary", "structured"])
def test_a_stage_refuses_it_and_writes_nothing(tmp_path: Path, name: str, structured: bool) -> None:
    app = App("relay", tmp_path, WAKESWAP_TENANTS=TENANTS)
    headers, body = (encode_structured if structured else encode_binary)(FORGED[name])
    answer = app.client.post("/", headers=headers, data=body)
    assert code(answer) == (403, "untrusted_event")
    assert everything(app) == []


def test_the_answer_does_not_tell_whether_the_tenant_or_the_job_exists(tmp_path: Path) -> None:
    app = App("relay", tmp_path, WAKESWAP_TENANTS=TENANTS)
    app.run("http")
    answers = [
        post(app, with_extensions(signed(event(job(job_id=subject), tenant="demo")), tenantid=tenant, proof="test.0"))
        for tenant in ("demo", "other", "stranger")
        for subject in (JOB, "job-00000002")
        if (tenant, subject) != ("demo", JOB)
    ]
    assert len({(answer.status_code, answer.data, tuple(answer.headers.to_wsgi_list())) for answer in answers}) == 1


@pytest.mark.parametrize("stage", ["relay", "second"])
@pytest.mark.parametrize("name", FORGED)
def test_stages_that_share_a_process_refuse_it_each(tmp_path: Path, stage: str, name: str) -> None:
    handovers = json.dumps({"second": [{"exact": {"type": "dev.wakeswap.relay.completed.v1"}}]})
    app = App("relay+second", tmp_path, WAKESWAP_HANDOVERS=handovers, WAKESWAP_TENANTS=TENANTS)
    assert code(post(app, FORGED[name], f"/{stage}")) == (403, "untrusted_event")
    assert everything(app) == []


def test_what_is_handed_over_in_a_process_is_signed_and_checked_too(tmp_path: Path) -> None:
    handovers = json.dumps({"second": [{"exact": {"type": "dev.wakeswap.relay.completed.v1"}}]})
    answer = App("relay+second", tmp_path, WAKESWAP_HANDOVERS=handovers).deliver(event())
    last = decode(dict(answer.headers), answer.data, limit=100_000)
    assert last.type == "dev.wakeswap.second.completed.v1"
    proof.read(EVENT_KEYS).verify(last)


@pytest.mark.parametrize("name", FORGED)
def test_wake_reads_nothing_and_does_nothing(tmp_path: Path, name: str) -> None:
    """That it was delivered has started the process already, which no check in the process could prevent."""
    app = App("relay", tmp_path, WAKESWAP_TENANTS=TENANTS)
    answer = post(app, FORGED[name], "/wake")
    assert (answer.status_code, answer.data, everything(app)) == (204, b"", [])


@pytest.mark.parametrize("name", FORGED)
def test_a_door_that_takes_events_of_others_refuses_ours_without_a_right_proof(tmp_path: Path, name: str) -> None:
    with broker() as server:
        app = App("intake", tmp_path, package="functions", K_SINK=server.address, WAKESWAP_TENANTS=TENANTS)
        assert code(post(app, FORGED[name])) == (403, "untrusted_event")
        assert (everything(app), server.received) == ([], [])


@pytest.mark.parametrize("name", FORGED)
def test_dead_letter_keeps_it_and_says_nothing_in_anybodys_name(tmp_path: Path, name: str) -> None:
    with broker() as server:
        app = App("dead_letter", tmp_path, package="functions", K_SINK=server.address, WAKESWAP_TENANTS=TENANTS)
        sent = with_extensions(FORGED[name], knativeerrorcode="503", knativeerrordest="http://swap/")
        assert post(app, sent).status_code == 204
        assert server.received == []
        (kept,) = app.names("system/dead-letter/")
        assert json.loads(app.store.get(kept)[0])["id"] == sent.id
        assert [key for key in everything(app) if not key.startswith("system/")] == []
        assert 'wakeswap_dead_letters_total{type="foreign"} 1.0' in app.client.get("/metrics").text


def test_dead_letter_believes_the_original_with_what_the_broker_added_and_signs_the_failure(tmp_path: Path) -> None:
    with broker() as server:
        app = App("dead_letter", tmp_path, package="functions", K_SINK=server.address)
        sent = with_extensions(SENT, knativeerrorcode="503", knativeerrordest="http://swap/", knativeerrordata="e30=")
        assert post(app, sent).status_code == 202
    ((_, headers, body),) = server.received
    failure = decode(headers, body, limit=100_000)
    assert failure.type == "dev.wakeswap.dead_letter.failed.v1"
    proof.read(EVENT_KEYS).verify(failure)


def test_what_a_door_publishes_is_signed(tmp_path: Path) -> None:
    ping = Event("p-1", "/ping", "dev.knative.sources.ping", datacontenttype="application/json", data=["job-000000a1"])
    with broker() as server:
        assert post(App("door", tmp_path, K_SINK=server.address), ping).status_code == 202
    ((_, headers, body),) = server.received
    proof.read(EVENT_KEYS).verify(decode(headers, body, limit=100_000))


def shouted(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return {name.upper(): value for name, value in headers.items()}, body


def escaped(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    changed = {"ce-tenantid": "%64%65mo", "ce-source": headers["ce-source"].replace("/", "%2F")}
    return {**headers, **changed}, body


def loose(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return headers, json.dumps(json.loads(body), indent=2).encode()


def structured(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return encode_structured(decode(headers, body, limit=100_000))


def structured_and_loose(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return {"content-type": STRUCTURED}, json.dumps(json.loads(structured(headers, body)[1]), indent=2).encode()


@pytest.mark.parametrize("change", [shouted, escaped, loose, structured, structured_and_loose])
def test_whatever_form_a_broker_gives_the_event_it_is_believed(
    tmp_path: Path, change: Callable[[dict[str, str], bytes], tuple[dict[str, str], bytes]]
) -> None:
    app = App("relay", tmp_path)
    headers, body = change(*encode_binary(SENT))
    answer = app.client.post("/", headers=headers, data=body)
    assert answer.status_code == 200
    reply = decode(dict(answer.headers), answer.data, limit=100_000)
    proof.read(EVENT_KEYS).verify(reply)
    assert post(app, SENT).data == answer.data


def test_a_reply_given_again_keeps_its_bytes_also_after_a_change_of_keys(tmp_path: Path) -> None:
    first = App("relay", tmp_path).deliver(event())
    keys_now = f"next={'9' * 32},{EVENT_KEYS}"
    again = App("relay", tmp_path, WAKESWAP_EVENT_KEYS=keys_now).deliver(event())
    assert (again.data, again.headers.to_wsgi_list()) == (first.data, first.headers.to_wsgi_list())
    fresh = App("relay", tmp_path, WAKESWAP_EVENT_KEYS=keys_now).deliver(event(event_id="e-2"))
    assert fresh.headers["ce-proof"].startswith("next.")


def test_the_end_of_a_job_is_believed_by_who_tells_of_it(tmp_path: Path) -> None:
    end = event(Rejection(JOB, "detect", "no_face_in_source", "No face.", 422), stage="detect")
    app = App("notify", tmp_path, package="functions")
    assert code(post(app, end)) == (403, "untrusted_event")
    assert everything(app) == []
    assert app.deliver(end).status_code == 204


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("said", ["", "k1=short"])
def test_no_stage_starts_without_keys_or_the_word_for_it(tmp_path: Path, stage: str, said: str) -> None:
    environ = {"WAKESWAP_STORE_URL": f"file:{tmp_path}", "WAKESWAP_EVENT_KEYS": said}
    with pytest.raises(ConfigError, match="WAKESWAP_EVENT_KEYS"):
        create(stage, environ=environ)


def test_an_installation_that_says_unsigned_takes_what_comes(tmp_path: Path) -> None:
    app = App("relay", tmp_path, WAKESWAP_EVENT_KEYS="unsigned")
    answer = post(app, event())
    assert answer.status_code == 200
    assert "ce-proof" not in answer.headers
    assert app.names(keys.job("demo", JOB)) != []

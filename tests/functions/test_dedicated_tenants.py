"""A tenant whose policy says `dedicated` is refused wherever it is not at home, and its home refuses all others: by the
API, the doors and every stage, each time with one end that says why, and nothing is done for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ConfigError
from shared.events.codec import decode
from shared.events.event import Event
from shared.events.payloads import Failure, Rejection
from shared.rejections import TenantElsewhereError
from shared.storage import keys
from shared.tenancy.directory import load
from tests.unit.jobs.world import picture
from tests.unit.serving.support import JOB, PICTURE, App, event, job
from tests.unit.serving.test_emitter import Broker, broker

SHOP, BANK = "shop", "bank"
"""One on the shared installation, one with its own."""
TENANTS = {SHOP: {}, BANK: {"policy": {"isolation": "dedicated"}}}
KEYS = {name: f"key-of-{name}-0123456789" for name in TENANTS}
TOKEN = "token-of-the-bucket"
SHARED, OWN = "", BANK
REFUSED = [(SHARED, BANK), (OWN, SHOP)]
SERVED = [(SHARED, SHOP), (OWN, BANK)]
REJECTED = Rejection(JOB, "relay", "tenant_elsewhere", TenantElsewhereError.title, 403)


def settings(only: str) -> dict[str, str]:
    return {
        "WAKESWAP_TENANTS": json.dumps(TENANTS),
        "WAKESWAP_API_KEYS": ",".join(f"{name}={key}" for name, key in KEYS.items()),
        "WAKESWAP_NOTIFICATION_TOKEN": TOKEN,
        "WAKESWAP_ONLY_TENANT": only,
    }


@pytest.fixture
def server() -> Iterator[Broker]:
    with broker() as running:
        yield running


def intake(root: Path, server: Broker, only: str) -> App:
    return App("intake", root, package="functions", K_SINK=server.address, **settings(only))


def ask(app: App, tenant: str, method: str, path: str, **more: Any) -> Any:
    return app.client.open(path, method=method, headers={"Authorization": f"Bearer {KEYS[tenant]}"}, **more)


def of(tenant: str, origin: str = "http") -> Event:
    asked = job(origin)
    ref = replace(PICTURE, key=f"tenants/{tenant}/inbox/a.png")
    return event(replace(asked, source=(ref,), target=ref), tenant=tenant)


@pytest.mark.parametrize(("only", "tenant"), REFUSED)
def test_a_stage_answers_with_one_rejection_and_does_nothing(tmp_path: Path, only: str, tenant: str) -> None:
    app = App("relay", tmp_path, **settings(only))
    answers = [app.deliver(of(tenant)) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    (said,) = {answer.data for answer in answers}
    reply = decode(dict(answers[0].headers), said, limit=100_000)
    assert (reply.type, reply.extensions["tenantid"]) == ("dev.wakeswap.relay.rejected.v1", tenant)
    assert isinstance(reply.data, dict)
    assert (reply.data["code"], reply.data["status"]) == ("tenant_elsewhere", 403)
    folder = keys.job(tenant, JOB)
    kept = {name.removeprefix(folder).partition("/")[0] for name in app.names(folder)}
    assert kept == {"outcome.json", "relay"}, "its end, and the record that it was told"


@pytest.mark.parametrize(("only", "tenant"), SERVED)
def test_at_home_a_stage_works_for_it(tmp_path: Path, only: str, tenant: str) -> None:
    answer = App("relay", tmp_path, **settings(only)).deliver(of(tenant))
    assert (answer.status_code, answer.headers["ce-type"]) == (200, "dev.wakeswap.relay.completed.v1")


@pytest.mark.parametrize(("only", "tenant"), REFUSED)
def test_two_stages_that_meet_the_same_job_end_it_once(tmp_path: Path, only: str, tenant: str) -> None:
    first = App("relay", tmp_path, **settings(only)).deliver(of(tenant))
    second = App("second", tmp_path, **settings(only)).deliver(replace(of(tenant), id="e-2"))
    assert (first.status_code, second.status_code) == (200, 204)
    assert json.loads(first.data)["code"] == "tenant_elsewhere"


@pytest.mark.parametrize(("only", "tenant"), REFUSED)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/jobs"),
        ("GET", f"/v1/jobs/{JOB}"),
        ("GET", f"/v1/jobs/{JOB}/result"),
        ("DELETE", f"/v1/jobs/{JOB}"),
        ("POST", "/v1/jobs"),
    ],
)
def test_the_api_refuses_it_by_a_problem_and_keeps_nothing(
    tmp_path: Path, server: Broker, only: str, tenant: str, method: str, path: str
) -> None:
    app = intake(tmp_path, server, only)
    for key in ("source.jpg", "target.jpg"):
        app.store.put(f"tenants/{tenant}/inbox/{key}", picture(1))
    before = set(app.names("tenants/"))
    body = {"source": f"tenants/{tenant}/inbox/source.jpg", "target": f"tenants/{tenant}/inbox/target.jpg"}
    answer = ask(app, tenant, method, path, **({"json": body} if method == "POST" else {}))
    assert (answer.status_code, answer.content_type) == (403, "application/problem+json")
    problem = answer.get_json(force=True)
    assert (problem["status"], problem["code"]) == (403, "tenant_elsewhere")
    assert not [name for name in TENANTS if name in answer.text], "nor does it say who is at home here"
    assert set(app.names("tenants/")) == before
    assert server.received == []


@pytest.mark.parametrize(("only", "tenant"), SERVED)
def test_at_home_the_api_lets_it_in(tmp_path: Path, server: Broker, only: str, tenant: str) -> None:
    assert ask(intake(tmp_path, server, only), tenant, "GET", "/v1/jobs").status_code == 200


@pytest.mark.parametrize(("only", "tenant"), REFUSED)
def test_an_upload_ends_in_one_rejection(tmp_path: Path, server: Broker, only: str, tenant: str) -> None:
    app = intake(tmp_path, server, only)
    key = f"tenants/{tenant}/inbox/set/source.jpg"
    for name in (key, key.replace("source", "target")):
        app.store.put(name, picture(1))
    entry = {"bucket": {"name": "wakeswap"}, "object": {"key": key, "size": 9, "eTag": "e"}}
    body = {"Records": [{"eventName": "ObjectCreated:Put", "s3": entry}]}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    told = [app.client.post("/events/s3", json=body, headers=headers).status_code for _ in range(2)]
    assert told == [202, 202]
    events = [(headers["ce-type"], headers["ce-tenantid"], headers["ce-id"]) for headers in _headers(server)]
    assert {entry[:2] for entry in events} == {("dev.wakeswap.intake.rejected.v1", tenant)}
    assert len({entry[2] for entry in events}) == 1, "the repeat tells the same event again"
    assert json.loads(server.received[0][2])["code"] == "tenant_elsewhere"


@pytest.mark.parametrize(("only", "tenant"), REFUSED)
def test_the_clock_starts_nothing_for_it(tmp_path: Path, server: Broker, only: str, tenant: str) -> None:
    app = intake(tmp_path, server, only)
    app.store.put(f"tenants/{tenant}/inbox/nightly/source.jpg", picture(1))
    data = {"tenant": tenant, "prefix": "nightly/"}
    headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/pingsources/nightly",
               "ce-type": "dev.knative.sources.ping", "ce-time": "2026-01-02T03:04:05Z"}  # fmt: skip
    answer = app.client.post("/", json=data, headers=headers)
    assert answer.status_code == 400, "it goes to the dead letters, where an operator sees it"
    assert TenantElsewhereError.title in answer.text
    assert server.received == []


@pytest.mark.parametrize(("only", "tenant"), REFUSED)
@pytest.mark.parametrize("end", [REJECTED, Failure(JOB, "swap", "x", "y", "z")])
def test_whose_end_it_is_hears_of_it(tmp_path: Path, only: str, tenant: str, end: Rejection | Failure) -> None:
    app = App("notify", tmp_path, package="functions", **settings(only))
    assert app.deliver(event(end, stage="relay", tenant=tenant)).status_code == 204


def test_a_dedicated_installation_never_waits_for_a_tenant_that_it_does_not_know(tmp_path: Path) -> None:
    """Of its own folder of tenants only its own file may yet come."""
    (tmp_path / "tenants").mkdir()
    own = {"WAKESWAP_TENANTS": "{}", "WAKESWAP_TENANTS_FOLDER": str(tmp_path / "tenants"), "WAKESWAP_ONLY_TENANT": BANK}
    app = App("relay", tmp_path / "objects", **own)
    answer = app.deliver(of(SHOP))
    assert (answer.status_code, answer.get_json(force=True)["code"]) == (403, "tenant_elsewhere")
    answer = app.deliver(of(BANK))
    assert (answer.status_code, answer.get_json(force=True)["code"]) == (503, "tenant_not_ready")
    assert app.names("tenants/") == []


def test_who_moves_to_its_own_installation_is_refused_from_then_on(tmp_path: Path) -> None:
    folder = tmp_path / "tenants"
    folder.mkdir()
    (folder / "bank.yaml").write_text("policy: {isolation: shared}")
    directory = load("{}", folder=str(folder))
    directory.admit(directory.get(BANK))
    (folder / "bank.yaml").write_text("policy: {isolation: dedicated}")
    after = load("{}", folder=str(folder))
    with pytest.raises(TenantElsewhereError):
        after.admit(after.get(BANK))


@pytest.mark.parametrize("name", ["Bank", "bank ", "a/b", "..", "x" * 41])
def test_a_name_that_no_tenant_can_have_is_refused_at_the_start(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load("{}", only=name)
    assert caught.value.context["field"] == "only"


def _headers(server: Broker) -> list[dict[str, str]]:
    return [{name.lower(): value for name, value in dict(headers).items()} for _, headers, _ in server.received]

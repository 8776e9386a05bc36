"""Who asked, and who was turned away: the front door's part of the audit, through the real app."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from shared.audit.lines import Entry
from shared.audit.trail import NOBODY, Trail
from shared.errors import StoreUnavailableError
from shared.storage.local import LocalStore
from tests.unit.jobs.world import picture
from tests.unit.serving.support import App
from tests.unit.serving.test_emitter import Broker, broker

KEY, AUDIT_KEY = "key-of-demo-0123456789", "the-audit-key-of-the-tests-0123456789"
TENANTS = {"demo": {"policy": {"max_concurrent": 1, "stages": []}}, "acme": {}}
ADDRESS = "203.0.113.7"


@pytest.fixture
def server() -> Iterator[Broker]:
    with broker() as running:
        yield running


@pytest.fixture
def intake(tmp_path: Path, server: Broker) -> App:
    return app(tmp_path, server)


def app(root: Path, server: Broker, **more: str) -> App:
    own = {"WAKESWAP_API_KEYS": f"demo={KEY}", "K_SINK": server.address, "WAKESWAP_AUDIT_KEY": AUDIT_KEY}
    own["WAKESWAP_TENANTS"] = json.dumps(TENANTS)
    return App("intake", root, package="functions", **{**own, **more})


def post(intake: App, options: dict[str, Any] | None = None, *, key: str = KEY, **headers: str) -> TestResponse:
    data = {"source": (io.BytesIO(picture(1)), "s.jpg"), "target": (io.BytesIO(picture(2)), "t.jpg")}
    form = {**data, "options": json.dumps(options or {})}
    credentials = {"Authorization": f"Bearer {key}", **headers}
    return intake.client.post("/v1/jobs", data=form, headers=credentials, content_type="multipart/form-data")


def entries(intake: App, tenant: str = "demo") -> list[Entry]:
    trail = Trail(intake.store)
    return [one for day in trail.days() for one in trail.of_day(tenant, day)]


def facts(intake: App, tenant: str = "demo") -> list[tuple[str, str, str, str]]:
    return [(one.what, one.decision, one.code, one.by) for one in entries(intake, tenant)]


def test_who_asked_for_a_job_and_who_cancelled_it(intake: App) -> None:
    first = post(intake, **{"Idempotency-Key": "a"})
    assert post(intake, **{"Idempotency-Key": "a"}).get_json()["id"] == first.get_json()["id"]
    for _ in range(2):
        path = f"/v1/jobs/{first.get_json()['id']}"
        assert intake.client.delete(path, headers={"Authorization": f"Bearer {KEY}"}).status_code == 204
    assert facts(intake) == [("job", "accepted", "", "env:demo"), ("job", "cancelled", "", "env:demo")]
    assert {one.job for one in entries(intake)} == {first.get_json()["id"]}
    pictures = entries(intake)[0].facts["pictures"]
    assert isinstance(pictures, dict)
    assert set(pictures) == {"source", "target"}


def test_a_job_that_policy_refuses(intake: App) -> None:
    assert post(intake, {"enhancer": "gfpgan_1.4"}).status_code == 403
    assert facts(intake) == [("job", "refused", "not_allowed", "env:demo")]


def test_a_job_over_quota_is_on_record_once_a_minute(intake: App) -> None:
    assert post(intake).status_code == 202
    for _ in range(5):
        assert post(intake).status_code == 429
    refused = facts(intake)[1:]
    assert set(refused) == {("access", "refused", "quota_exceeded", "env:demo")}
    assert len(refused) <= 2, "the minute may have changed"


def test_requests_over_their_rate(tmp_path: Path, server: Broker) -> None:
    intake = app(tmp_path, server, WAKESWAP_RATE_PER_KEY="1")
    answers = [intake.client.get("/v1/jobs", headers={"Authorization": f"Bearer {KEY}"}) for _ in range(5)]
    assert answers[-1].status_code == 429
    assert set(facts(intake)) == {("access", "refused", "rate_limited", "env:demo")}


@pytest.mark.parametrize("audit_key", [AUDIT_KEY, ""])
def test_an_address_that_guesses_keys(tmp_path: Path, server: Broker, audit_key: str) -> None:
    more = {"WAKESWAP_AUTH_FAILURES": "2", "WAKESWAP_TRUSTED_PROXIES": "1", "WAKESWAP_AUDIT_KEY": audit_key}
    intake = app(tmp_path, server, **more)
    guesses = [post(intake, key=f"wrong-key-{index}-0123456789", **{"X-Forwarded-For": ADDRESS}) for index in range(5)]
    assert [answer.status_code for answer in guesses] == [401, 401, 429, 429, 429]
    (found,) = set(facts(intake, NOBODY))
    assert found[:3] == ("access", "refused", "rate_limited")
    assert found[3].startswith("address:")
    assert (found[3] == "address:not_kept") == (not audit_key)
    assert ADDRESS not in str(entries(intake, NOBODY))


def test_a_refusal_is_told_also_when_it_cannot_be_put_on_record(intake: App, monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch)
    assert post(intake, {"enhancer": "gfpgan_1.4"}).status_code == 403
    assert "wakeswap_refusals_not_audited_total 1.0" in intake.client.get("/metrics").text


def test_a_job_whose_acceptance_cannot_be_put_on_record_does_not_run(
    intake: App, server: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = deny(monkeypatch)
    assert post(intake, **{"Idempotency-Key": "a"}).status_code == 503
    assert not server.received, "nobody works on what nobody knows of"
    down.clear()
    assert post(intake, **{"Idempotency-Key": "a"}).status_code == 202, "the same request again"
    assert [one.decision for one in entries(intake)] == ["accepted"]
    assert len(server.received) == 1


def deny(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    real, down = LocalStore.create, [True]

    def create(self: LocalStore, key: str, *args: Any, **more: Any) -> Any:
        if down and key.startswith("system/audit/"):
            raise StoreUnavailableError
        return real(self, key, *args, **more)

    monkeypatch.setattr(LocalStore, "create", create)
    return down

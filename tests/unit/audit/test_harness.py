"""What stages decide is on record, in one object an event, before anyone hears of it; and what that costs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.audit.lines import Entry
from shared.audit.trail import Trail
from shared.errors import StoreUnavailableError
from shared.events.payloads import Result
from shared.storage.local import LocalStore
from tests.unit.serving.support import JOB, PICTURE, App, event
from tests.unit.webhooks.receiver import SECRET, running

KEY = "the-audit-key-of-the-tests-0123456789"
LOOKED = [("moderation", "pass", "nsfw")]


@pytest.fixture
def judging(tmp_path: Path) -> App:
    return App("judging", tmp_path, WAKESWAP_AUDIT_KEY=KEY)


def entries(app: App) -> list[Entry]:
    return Trail(app.store).of_job("demo", JOB)


def facts(app: App) -> list[tuple[str, str, str]]:
    return [(one.what, one.decision, one.code) for one in entries(app)]


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("pass", [*LOOKED, ("moderation", "pass", "words")]),
        ("reject", [*LOOKED, ("moderation", "reject", "words"), ("job", "refused", "content_refused")]),
        ("review", [*LOOKED, ("moderation", "review", "words")]),
        ("publish", [*LOOKED, ("moderation", "pass", "words"), ("result", "published", "")]),
    ],
)
def test_one_object_an_event_however_often_it_comes(
    judging: App, origin: str, expected: list[tuple[str, str, str]]
) -> None:
    for _ in range(3):
        assert judging.run(origin).status_code < 300
    assert facts(judging) == expected
    assert len(judging.names("system/audit/")) == 1
    assert {one.by for one in entries(judging)} == {"stage:judging"}


def test_a_result_is_named_by_its_keyed_hash(judging: App) -> None:
    judging.run("publish")
    assert PICTURE.digest not in str([one.facts for one in entries(judging) if one.what == "result"])
    assert entries(judging)[-1].facts["picture"]


def test_a_stage_that_decides_nothing_writes_nothing(tmp_path: Path) -> None:
    app = App("relay", tmp_path)
    assert app.run("pass").status_code == 200
    assert not app.names("system/audit/")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    made: Counter[str] = Counter()
    for name in ("get", "head", "put", "create", "replace", "delete", "list"):
        monkeypatch.setattr(LocalStore, name, _counted(name, getattr(LocalStore, name), made))
    return made


def _counted(name: str, real: Callable[..., Any], made: Counter[str]) -> Callable[..., Any]:
    def call(*args: Any, **more: Any) -> Any:
        made[name] += 1
        return real(*args, **more)

    return call


def test_all_decisions_of_an_event_cost_one_write(judging: App, tmp_path: Path, calls: Counter[str]) -> None:
    """Two decisions of moderation and the end of the job, against a stage that only ends it and one that passes on."""
    costs = {}
    for app, origin in ((App("relay", tmp_path / "a"), "pass"), (judging, "publish")):
        before = sum(calls.values())
        app.run(origin)
        costs[origin] = sum(calls.values()) - before
    plain = App("relay", tmp_path / "b")
    before = sum(calls.values())
    plain.run("result")
    ended = sum(calls.values()) - before
    assert ended - costs["pass"] >= 2, "an end costs its record and its line"
    assert costs["publish"] == ended + 1, "decisions.json; their lines lie in the object of the end"


def test_what_cannot_be_put_on_record_is_not_told_and_comes_again(
    judging: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, down = LocalStore.create, [True]

    def create(self: LocalStore, key: str, *args: Any, **more: Any) -> Any:
        if down and key.startswith("system/audit/"):
            raise StoreUnavailableError
        return real(self, key, *args, **more)

    monkeypatch.setattr(LocalStore, "create", create)
    assert judging.run("publish").status_code == 503, "the broker sends it again"
    assert not facts(judging)
    down.clear()
    answer = judging.run("publish")
    assert answer.status_code == 200, "nothing is lost"
    assert len(facts(judging)) == 3


@pytest.mark.parametrize(("status", "expected"), [(200, ("webhook", "delivered", "")), (410, None)])
def test_webhooks(tmp_path: Path, status: int, expected: tuple[str, str, str] | None) -> None:
    with running() as receiver:
        receiver.status = status
        tenants = {"demo": {"webhook": {"url": receiver.url(), "allow_local": True}}}
        app = App(
            "notify",
            tmp_path,
            package="functions",
            WAKESWAP_TENANTS=json.dumps(tenants),
            WAKESWAP_WEBHOOK_SECRETS=f"demo={SECRET}",
        )
        result = Result(JOB, PICTURE, 4, 3, (), "https://x.example/a", "2030-01-01T00:00:00Z")
        for _ in range(2):
            assert app.deliver(event(result, stage="publish")).status_code == 204
    assert facts(app) == [expected or ("webhook", "refused", "delivery_refused")]
    assert entries(app)[0].facts == {"status": status}

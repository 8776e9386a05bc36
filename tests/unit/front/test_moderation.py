"""What the API shows of moderation: a job that waits for a person, and every decision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.jobs import decisions
from shared.jobs.decisions import Decision
from shared.storage import keys
from shared.storage.scoped import TenantStore
from tests.contract.test_openapi import check
from tests.unit.front.api import Api

LOOK = Decision("target", "nsfw", "open_nsfw", "a" * 64, 0.91, 0.8, "blur")
READ = Decision("target", "words", "pp_ocr", "b" * 64, 0.99, 0.0, "blur", (3,), (0.1,) * 8)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def test_decisions_are_shown_with_model_and_score_and_without_boxes(api: Api) -> None:
    job = api.send().get_json()["id"]
    for stage, made in (("publish", (replace(LOOK, picture="finished"),)), ("moderate", (LOOK, READ))):
        decisions.keep(TenantStore(api.world.store, "demo", job, stage), made)
    body = api.call("GET", f"/v1/jobs/{job}").get_json()
    check("Job", body)
    assert [(one["stage"], one["picture"], one["check"]) for one in body["moderation"]] == [
        ("moderate", "target", "nsfw"),
        ("moderate", "target", "words"),
        ("publish", "finished", "nsfw"),
    ]
    first, second, _ = body["moderation"]
    assert first == {
        "stage": "moderate",
        "picture": "target",
        "check": "nsfw",
        "action": "blur",
        "model": "open_nsfw",
        "model_digest": "a" * 64,
        "score": 0.91,
        "threshold": 0.8,
    }
    assert second["words"] == [3]
    assert "boxes" not in second
    (listed,) = api.call("GET", "/v1/jobs").get_json()["jobs"]
    assert "moderation" not in listed


def test_a_job_that_nobody_looked_at_says_nothing_of_it(api: Api) -> None:
    job = api.send().get_json()["id"]
    api.world.store.put(keys.job("demo", job, "moderate", decisions.NAME), b"{")
    assert "moderation" not in api.call("GET", f"/v1/jobs/{job}").get_json()


def test_a_job_waits_until_its_verdict(api: Api) -> None:
    job = api.send().get_json()["id"]
    held = keys.job("demo", job, "moderate", "hold.0123456789ab.json")
    api.world.store.put(held, b"{}")
    assert api.call("GET", f"/v1/jobs/{job}").get_json()["status"] == "in_review"
    assert [one["id"] for one in api.call("GET", "/v1/jobs?status=in_review").get_json()["jobs"]] == [job]
    api.world.store.put(held.replace("hold.", "review."), b"{}")
    assert api.call("GET", f"/v1/jobs/{job}").get_json()["status"] != "in_review"
    api.world.store.put(held.replace("0123", "9999"), b"{}")
    assert api.call("GET", f"/v1/jobs/{job}").get_json()["status"] == "in_review"
    api.finish(job)
    assert api.call("GET", f"/v1/jobs/{job}").get_json()["status"] == "succeeded"

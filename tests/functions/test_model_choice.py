"""A job's choice of a model, through the harness: forbidden and unknown ones end the job, and are not tried again."""

from __future__ import annotations

import json

import pytest
from werkzeug.test import TestResponse

from shared.events.codec import decode
from shared.events.event import parse_type
from shared.events.payloads import Face, Faces, Job, Options
from shared.storage import keys
from tests.unit.serving.support import JOB, PICTURE, App, event, until

FACE = Face(0, 0, 10, 10, 1.0)
TENANTS = {"demo": {}, "lab": {"policy": {"licences": "research"}}, "free": {"policy": {"licences": "any"}}}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def swap(tmp_path_factory: pytest.TempPathFactory) -> App:
    root = tmp_path_factory.mktemp("store")
    settings = {"WAKESWAP_TENANTS": json.dumps(TENANTS), "WAKESWAP_MODEL_CACHE": str(root / "models")}
    app = App("swap", root, package="functions", **settings)
    until(app.is_ready, 60)
    return app


def ask(swap: App, swapper: str, tenant: str) -> TestResponse:
    """Deliver a job that asks for this swapper; its landmarks are not there, which is found out after the model."""
    job = f"{JOB}-{swapper}-{tenant}".replace("_", "-")
    faces = Faces(job, Job(job, (PICTURE,), PICTURE, Options(swapper=swapper)), FACE, (FACE,), PICTURE)
    return swap.deliver(event(faces, stage="detect", event_id=job, tenant=tenant))


def rejection(answer: TestResponse) -> dict[str, object]:
    assert answer.status_code == 200, answer.text
    end = decode(dict(answer.headers), answer.data, limit=100_000)
    assert parse_type(end.type) == ("swap", "rejected")
    assert isinstance(end.data, dict)
    return dict(end.data)


def test_a_model_against_the_tenants_licence_policy_ends_the_job(swap: App) -> None:
    said = rejection(ask(swap, "inswapper_128", "demo"))
    assert (said["code"], said["status"]) == ("model_forbidden", 422)
    assert said["context"] == {"model": "inswapper_128", "licence": "non-commercial", "policy": "commercial-only"}
    outcome = keys.job("demo", f"{JOB}-inswapper-128-demo", "outcome.json")
    assert json.loads(swap.store.get(outcome)[0])["type"] == "dev.wakeswap.swap.rejected.v1"


def test_a_chain_counts_as_its_worst_link(swap: App) -> None:
    assert rejection(ask(swap, "ghost_1_256", "demo"))["code"] == "model_forbidden"
    said = rejection(ask(swap, "ghost_1_256", "lab"))
    assert said["context"] == {
        "model": "ghost_1_256",
        "licence": "Apache-2.0; converter: not stated",
        "policy": "research",
    }


@pytest.mark.parametrize("tenant", TENANTS)
def test_the_embedded_swapper_is_for_every_tenant(swap: App, tenant: str) -> None:
    assert rejection(ask(swap, "mesh", tenant))["code"] not in ("model_forbidden", "unknown_model")


@pytest.mark.parametrize("name", ["nope", "centerface", "codeformer"])
def test_a_name_that_is_no_swapper_ends_the_job(swap: App, name: str) -> None:
    said = rejection(ask(swap, name, "free"))
    assert (said["code"], said["status"], said["context"]) == ("unknown_model", 422, {"model": name})

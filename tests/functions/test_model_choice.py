"""A job's choice of a model, through the harness: forbidden and unknown ones end the job, and are not tried again."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from functions.moderate.asked import permit
from shared.events.choices import Options
from shared.events.codec import decode
from shared.events.event import parse_type
from shared.events.payloads import Face, Faces, Job
from shared.models import catalog
from shared.models.cache import ModelCache
from shared.models.choice import TenantModels
from shared.models.registry import ModelRegistry
from shared.rejections import ModelForbiddenError
from shared.storage import keys
from shared.tenancy.tenant import Policy
from shared.vision.runtime import Runtime
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


@pytest.fixture(scope="module")
def moderate(tmp_path_factory: pytest.TempPathFactory, model_cache: ModelCache) -> App:
    model_cache.ensure(catalog.default().model("moderator"))
    settings = {"WAKESWAP_TENANTS": json.dumps(TENANTS), "WAKESWAP_MODEL_CACHE": str(model_cache.root)}
    app = App("moderate", tmp_path_factory.mktemp("store"), package="functions", **settings)
    until(app.is_ready, 60)
    return app


@pytest.mark.parametrize(
    ("asked", "tenant", "code"),
    [
        ({"swapper": "inswapper_128"}, "demo", "model_forbidden"),
        ({"swapper": "nope"}, "free", "unknown_model"),
        ({"swapper": "codeformer"}, "free", "unknown_model"),
        ({"enhancer": "codeformer"}, "demo", "model_forbidden"),
        ({"enhancer": "mesh"}, "free", "unknown_model"),
        ({"upscaler": "nope"}, "free", "unknown_model"),
    ],
)
def test_the_first_stage_refuses_before_a_picture_is_read(
    moderate: App, asked: dict[str, str], tenant: str, code: str
) -> None:
    """The pictures are not there, which is found out after the models, and no later stage has been asked."""
    job = f"{JOB}-{tenant}-{'-'.join(*asked.items())}".replace("_", "-")
    wanted = Job(job, (PICTURE,), PICTURE, Options(**asked))  # type: ignore[arg-type]
    answer = moderate.deliver(event(wanted, stage="intake", event_id=job, tenant=tenant))
    said = rejection(answer, "moderate")
    assert (said["code"], said["status"]) == (code, 422)
    assert isinstance(said["context"], dict)
    assert said["context"]["model"] == next(iter(asked.values()))


@pytest.mark.parametrize(
    ("asked", "forbidden"),
    [
        ({"swapper": "inswapper_128", "masks": ("box", "region")}, "bisenet_resnet_34"),
        ({"swapper": "inswapper_128", "masks": ("occlusion",)}, "xseg_1"),
        ({"swapper": "inswapper_128"}, ""),
        ({"swapper": "mesh", "masks": ("occlusion", "region")}, ""),
    ],
)
def test_the_first_stage_refuses_the_models_behind_a_learned_swappers_masks(
    tmp_path: Path, asked: dict[str, Any], forbidden: str
) -> None:
    """Where an operator has chosen maskers whose terms are not known."""
    known = catalog.default()
    unclear = {name: replace(known.models[name], commercial="unknown") for name in ("xseg_1", "bisenet_resnet_34")}
    known = replace(known, models={**known.models, **unclear})
    models = TenantModels(ModelRegistry(known, ModelCache(tmp_path), Runtime()), known, Policy(licences="research"))
    if not forbidden:
        permit(Options(**asked), models)
        return
    with pytest.raises(ModelForbiddenError) as caught:
        permit(Options(**asked), models)
    assert caught.value.context["model"] == forbidden


def test_the_embedded_swappers_masks_need_no_model(moderate: App) -> None:
    job = f"{JOB}-mesh-masks"
    picture = replace(PICTURE, key=keys.inbox("demo", "gone.png"))
    wanted = Job(job, (picture,), picture, Options(masks=("occlusion", "region")))
    said = rejection(moderate.deliver(event(wanted, stage="intake", event_id=job, tenant="demo")), "moderate")
    assert said["code"] == "object_gone"


def test_what_the_catalogue_calls_embedded_takes_no_maskers() -> None:
    swappers = [spec for spec in catalog.default().models.values() if spec.role == "swapper"]
    assert len(swappers) > 5
    for spec in swappers:
        module, _, name = spec.adapter.partition(":")
        assert getattr(import_module(module), name).takes_maskers == bool(spec.files), spec.name


def test_the_first_stage_passes_what_the_tenant_may_use(moderate: App) -> None:
    """On to the pictures, which are missing."""
    job = f"{JOB}-allowed"
    picture = replace(PICTURE, key=keys.inbox("free", "gone.png"))
    wanted = Job(job, (picture,), picture, Options(swapper="inswapper_128", enhancer="codeformer"))
    answer = moderate.deliver(event(wanted, stage="intake", event_id=job, tenant="free"))
    assert rejection(answer, "moderate")["code"] == "object_gone"


def rejection(answer: TestResponse, stage: str = "swap") -> dict[str, object]:
    assert answer.status_code == 200, answer.text
    end = decode(dict(answer.headers), answer.data, limit=100_000)
    assert parse_type(end.type) == (stage, "rejected")
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

"""What a job may ask for by name: the tenant's licence policy, held against everything a model uses."""

from __future__ import annotations

from typing import TypeVar, cast

import pytest

from shared.errors import RejectedError
from shared.models import catalog
from shared.models.choice import TenantModels
from shared.rejections import ModelForbiddenError, UnknownModelError
from shared.tenancy.licences import ALLOWED, allows
from shared.tenancy.tenant import Policy
from shared.vision.protocols import Detector, Occluder, Swapper

A = TypeVar("A")


class Registry:
    """Only notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get(self, name: str, protocol: type[A]) -> A:
        self.asked.append(name)
        return cast("A", None)

    def warm(self, *names: str) -> None:
        self.asked += names


def view(licences: str) -> tuple[TenantModels, Registry]:
    registry = Registry()
    return TenantModels(registry, catalog.default(), Policy(licences=licences)), registry


@pytest.mark.parametrize(
    ("policy", "commercial", "allowed"),
    [
        ("commercial-only", "yes", True),
        ("commercial-only", "no", False),
        ("commercial-only", "unknown", False),
        ("research", "yes", True),
        ("research", "no", True),
        ("research", "unknown", False),
        ("any", "yes", True),
        ("any", "no", True),
        ("any", "unknown", True),
    ],
)
def test_the_decision(policy: str, commercial: str, allowed: bool) -> None:
    assert allows(policy, commercial) is allowed


def test_the_default_is_the_strictest() -> None:
    assert Policy().licences == "commercial-only" == min(ALLOWED, key=lambda name: len(ALLOWED[name]))


@pytest.mark.parametrize("name", ["mesh", "inswapper_128", "hyperswap_1a_256"])
@pytest.mark.parametrize("licences", ["research", "any"])
def test_an_allowed_model_is_handed_on(name: str, licences: str) -> None:
    models, registry = view(licences)
    models.get(name, Swapper)
    assert registry.asked == [name]


def test_a_forbidden_model_is_a_rejection_that_says_why() -> None:
    models, registry = view("commercial-only")
    with pytest.raises(ModelForbiddenError) as caught:
        models.get("inswapper_128", Swapper)
    assert isinstance(caught.value, RejectedError)
    assert (caught.value.status, caught.value.code) == (422, "model_forbidden")
    assert caught.value.context["model"] == "inswapper_128"
    assert caught.value.context["policy"] == "commercial-only"
    assert registry.asked == [], "not a byte is loaded"


def test_a_chain_is_forbidden_by_its_link() -> None:
    known = catalog.default()
    models, _ = view("research")
    with pytest.raises(ModelForbiddenError) as own:
        models.get("ghost_1_256", Swapper)
    assert own.value.context["licence"] == known.model("ghost_1_256").licence, "ArcFace is allowed, the converter not"
    models, _ = view("commercial-only")
    with pytest.raises(ModelForbiddenError, match="'ghost_1_256' needs 'arcface_w600k_r50'") as fed:
        models.get("ghost_1_256", Swapper)
    assert fed.value.context["licence"] == known.model("arcface_w600k_r50").licence


def test_an_unknown_name_is_a_rejection_with_the_known_ones() -> None:
    models, registry = view("any")
    with pytest.raises(UnknownModelError, match=r"no swapper that is called 'nope'; there are .*mesh") as caught:
        models.get("nope", Swapper)
    assert (caught.value.status, caught.value.code, caught.value.context) == (422, "unknown_model", {"model": "nope"})
    assert registry.asked == []


@pytest.mark.parametrize("name", ["centerface", "xseg_1"])
def test_a_model_of_another_role_is_unknown_in_this_one(name: str) -> None:
    models, _ = view("any")
    with pytest.raises(UnknownModelError, match="no swapper"):
        models.get(name, Swapper)
    models.get("xseg_1", Occluder)


@pytest.mark.parametrize(("name", "role"), [("mesh", "swapper"), ("inswapper_128", "swapper"), ("xseg_1", "occluder")])
def test_what_is_permitted_is_what_may_be_got_and_nothing_is_loaded(name: str, role: str) -> None:
    for licences in ALLOWED:
        models, registry = view(licences)
        if allows(licences, catalog.default().commercial(name)):
            models.permit(name, role)
        else:
            with pytest.raises(ModelForbiddenError):
                models.permit(name, role)
        with pytest.raises(UnknownModelError):
            models.permit(name, "upscaler")
        assert registry.asked == []


def test_what_the_operator_chose_for_a_role_is_not_asked_about() -> None:
    registry = Registry()
    chosen = catalog.default().choosing({"detector": "scrfd"})
    TenantModels(registry, chosen, Policy()).get("detector", Detector)
    assert registry.asked == ["detector"]

"""The component `fused-front`: three Services become one process, and what the stages hear stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.contract.components import ROOT, of_kind, rendered
from tests.contract.test_topology import OVERLAYS

STAGES = ("detect", "swap", "publish")


@pytest.fixture(params=OVERLAYS)
def before(request: pytest.FixtureRequest) -> tuple[dict[str, Any], ...]:
    return rendered(request.param)


@pytest.fixture
def after(request: pytest.FixtureRequest) -> tuple[dict[str, Any], ...]:
    return rendered(request.node.callspec.params["before"], "fused-front")


Docs = tuple[dict[str, Any], ...]


def services(docs: Docs) -> dict[str, Any]:
    return of_kind(docs, "Service", "serving.knative.dev")


def test_one_service_takes_the_place_of_three(before: Docs, after: Docs) -> None:
    assert set(services(after)) == set(services(before)) - set(STAGES) | {"fused"}
    pod = services(after)["fused"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    alone = services(before)["swap"]["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == [*alone["command"][:-1], f"shared.serving.app:create('{'+'.join(STAGES)}')"]
    assert pod["initContainers"][0]["command"] == ["python", "model-warmup/main.py", *STAGES]
    for patched in yaml.safe_load((ROOT / "knative/base/every-service.yaml").read_text()):
        *_, holder, field = patched["path"].split("/")
        of = container if "/containers/0/" in patched["path"] else pod
        given = patched["value"] in of[holder] if field == "-" else of[field] == patched["value"]
        assert given, "a Service of a component repeats what the base gives to all"


def test_the_triggers_are_those_of_the_stages_with_another_address(before: Docs, after: Docs) -> None:
    old, new = of_kind(before, "Trigger"), of_kind(after, "Trigger")
    assert set(old) - set(new) == {"wake-swap", "wake-publish"}
    for name, trigger in new.items():
        stage = name.removeprefix("wake-")
        expected = json.loads(json.dumps(old[name]["spec"]))
        if stage in STAGES:
            expected["subscriber"]["ref"]["name"] = "fused"
            expected["subscriber"].setdefault("uri", f"/{stage}")
        assert trigger["spec"] == expected


def test_what_is_handed_over_is_what_the_triggers_match(before: Docs, after: Docs) -> None:
    (container,) = services(after)["fused"]["spec"]["template"]["spec"]["containers"]
    (handovers,) = [entry["value"] for entry in container["env"] if entry["name"] == "WAKESWAP_HANDOVERS"]
    triggers = of_kind(before, "Trigger")
    expected = {stage: _heard(triggers[stage]["spec"]["filters"]) for stage in STAGES[1:]}
    assert json.loads(handovers) == expected, "knative/components/fused-front/fused.yaml holds a copy of these filters"


def _heard(filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of what has come in: where batches have Services of their own, none of them comes in here."""
    return [entry for entry in filters if entry != {"not": {"exact": {"priority": "batch"}}}]

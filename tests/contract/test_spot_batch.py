"""The component `spot-batch`: batch Services are their stages but for what is named here, and of each pair of Triggers
one hears an event."""

from __future__ import annotations

import copy
from itertools import product
from typing import Any

import pytest

from infra.local.eventing.filters import parse_filter
from infra.platform.check import findings
from infra.platform.cli import manifests
from infra.platform.configs import Configs
from infra.platform.stack import Stack
from infra.tenants.objects import at, rows
from infra.tenants.plan import plan
from infra.tenants.rendering import render
from infra.tenants.spec import Place, TenantSpec
from shared.errors import ConfigError
from shared.tenancy.folder import parse
from tests.contract.components import BARE, ROOT, of_kind, rendered
from tests.contract.schemas import schemas
from tests.contract.test_topology import STAGES

Docs = tuple[dict[str, Any], ...]
SPLIT = {"moderate", "detect", "swap", "enhance", "publish"}
GPU = {"swap", "enhance"}
SETS = [
    (),
    ("gpu",),
    ("node-cache-daemonset", "gpu"),
    ("node-cache-pvc",),
    ("cache-pod",),
    ("fused-front",),
    ("fused-front", "gpu"),
]
SETS += [("rabbitmq-broker",), ("kafka-broker",)]
SCALE = "autoscaling.knative.dev/"
ANNOTATIONS = {
    SCALE + "max-scale",
    SCALE + "window",
    SCALE + "scale-to-zero-pod-retention-period",
    SCALE + "initial-scale",
    "serving.knative.dev/progress-deadline",
}
"""Of the template: what a batch Service may say otherwise."""
POD = {"priorityClassName", "affinity", "tolerations"}
"""And of its pod."""


def services(docs: Docs) -> dict[str, Any]:
    return of_kind(docs, "Service", "serving.knative.dev")


def pairs(*components: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Each stage's Service without `fused-front`, which takes some away, and its batch Service."""
    apart = services(rendered(BARE, "spot-batch", *(name for name in components if name != "fused-front")))
    found = services(rendered(BARE, "spot-batch", *components))
    return {name: (apart[name], found[f"{name}-batch"]) for name in SPLIT}


def key(doc: dict[str, Any]) -> tuple[str, str]:
    return doc["kind"], doc["metadata"]["name"]


def scaling(service: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = service["spec"]["template"]["metadata"]["annotations"]
    return found


def pod(service: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = service["spec"]["template"]["spec"]
    return found


def alike(service: dict[str, Any]) -> dict[str, Any]:
    """Without what is named above, without the name and the label."""
    doc = copy.deepcopy(service)
    doc["metadata"]["name"] = doc["metadata"]["name"].removesuffix("-batch")
    doc["metadata"]["labels"].pop("wakeswap.dev/priority", None)
    for key in ANNOTATIONS:
        scaling(doc).pop(key, None)
    for field in POD:
        pod(doc).pop(field, None)
    return doc


@pytest.mark.parametrize("components", SETS, ids="+".join)
def test_a_batch_service_is_its_stage_but_for_what_is_named(components: tuple[str, ...]) -> None:
    for name, (stage, batch) in pairs(*components).items():
        assert alike(batch) == alike(stage), name
        assert set(scaling(batch)) >= ANNOTATIONS
        assert set(pod(batch)) >= POD


def test_which_stages_are_two_are_those_that_fetch_models() -> None:
    fetching = {name for name, service in services(rendered(BARE)).items() if pod(service).get("initContainers")}
    assert fetching == SPLIT
    added = set(services(rendered(BARE, "spot-batch"))) - set(services(rendered(BARE)))
    assert added == {f"{name}-batch" for name in SPLIT}


def test_what_is_not_batch_stays_as_it_is_but_for_what_it_hears() -> None:
    for components in SETS:
        plain, split = rendered(BARE, *components), rendered(BARE, "spot-batch", *components)
        for doc in plain:
            found = of_kind(split, doc["kind"], doc["apiVersion"])[doc["metadata"]["name"]]
            if doc["kind"] == "Trigger" and doc["metadata"]["name"].removeprefix("wake-") in SPLIT:
                found = copy.deepcopy(found)
                assert found["spec"]["filters"].pop() == {"not": {"exact": {"priority": "batch"}}}
            assert found == doc
        old, labels = {key(doc) for doc in plain}, {key(doc): doc["metadata"].get("labels", {}) for doc in split}
        new = {each for each, said in labels.items() if said.get("wakeswap.dev/priority") == "batch"}
        assert labels.keys() - old == new, "the README applies them first, by their label"
        assert {kind for kind, _ in new} == {"Service", "Trigger", "PriorityClass"}


def hears(docs: Docs, attributes: dict[str, str]) -> set[tuple[str, str]]:
    """Who gets an event with these attributes, and at which path."""
    found = []
    for trigger in of_kind(docs, "Trigger").values():
        if parse_filter({"filters": trigger["spec"]["filters"]}, "spec").matches(attributes):
            subscriber = trigger["spec"]["subscriber"]
            found.append((subscriber["ref"]["name"], subscriber.get("uri", "/")))
    assert len(set(found)) == len(found), f"{attributes} twice"
    return set(found)


def every_event() -> list[dict[str, str]]:
    """Without a priority: each type of each stage, with and without what a tenant or a job may ask for."""
    outcomes = ("completed", "rejected", "failed")
    return [
        {"type": f"dev.wakeswap.{stage}.{outcome}.v1", "source": f"/wakeswap/{stage}", "tenantid": "acme"}
        | ({"wake": wake} if wake else {})
        | ({"enhance": "true"} if enhance else {})
        for stage, outcome in product(STAGES, outcomes)
        for wake in ("", "ahead", "after-moderation")
        for enhance in (False, True)
    ]


def test_batch_jobs_go_to_batch_services_wake_them_ahead_and_all_others_go_where_they_went() -> None:
    plain, split = rendered(BARE), rendered(BARE, "spot-batch")
    woken = set()
    for event in every_event():
        before = hears(plain, event)
        for other in ({}, {"priority": "interactive"}, {"priority": "a new one"}):
            assert hears(split, event | other) == before
        batch = hears(split, event | {"priority": "batch"})
        assert batch == {(f"{name}-batch" if name in SPLIT else name, path) for name, path in before}
        woken |= {name for name, path in batch if path == "/wake"}
    assert woken == {"detect-batch", "swap-batch", "enhance-batch", "publish-batch"}


def test_fused_serves_what_is_not_batch_and_hands_over_as_before() -> None:
    split = rendered(BARE, "spot-batch", "fused-front")
    assert services(split)["fused"] == services(rendered(BARE, "fused-front"))["fused"]
    for event in every_event():
        heard = hears(split, event | {"priority": "batch"})
        assert "fused" not in {name for name, _ in heard}
        assert heard == hears(rendered(BARE, "spot-batch"), event | {"priority": "batch"})


@pytest.mark.parametrize("components", SETS, ids="+".join)
def test_batch_gives_way_and_grows_less(components: tuple[str, ...]) -> None:
    docs = rendered(BARE, "spot-batch", *components)
    ((name, low),) = of_kind(docs, "PriorityClass").items()
    assert -10 <= low["value"] < 0, "below -10 the cluster autoscaler adds no node for it"
    assert low["preemptionPolicy"] == "Never"
    assert not low.get("globalDefault")
    assert "namespace" not in low["metadata"]
    for service in services(docs).values():
        is_batch = service["metadata"]["name"].endswith("-batch")
        assert pod(service).get("priorityClassName") == (name if is_batch else None)
        tolerated = [f"{taint['key']}={taint.get('value')}" for taint in pod(service).get("tolerations", [])]
        spot = [taint for taint in tolerated if "spot" in taint]
        assert (len(spot) == 3, bool(pod(service).get("affinity"))) == (is_batch, is_batch)
    for stage, (interactive, batch) in pairs(*components).items():
        most = [int(scaling(one)[SCALE + "max-scale"]) for one in (interactive, batch)]
        assert most[1] < most[0] or most == [1, 1], "one GPU each is the least there is"
        on_gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod(batch)["tolerations"]
        assert on_gpu == ("gpu" in components and stage in GPU)
        assert scaling(batch)[SCALE + "scale-to-zero-pod-retention-period"] == "0s"
        assert scaling(batch)[SCALE + "initial-scale"] == "0", "a deploy waits for no spot node"


def test_of_one_dedicated_tenant_too_whose_class_is_the_clusters() -> None:
    text = "policy: {isolation: dedicated}\ndedicated: {gpus: 4}\n"
    spec = TenantSpec(parse("acme.yaml", text, 0.0), text, Place("acme"))
    docs = plan(spec, render(spec, ROOT / "knative/overlays/production-spot"))
    found = findings(Stack(docs, Configs.of(manifests(Stack(docs))), schemas()))
    assert not found, "\n".join(map(str, found))
    assert "PriorityClass" not in {doc["kind"] for doc in docs}
    batch = [doc for doc in docs if str(at(doc, "metadata")["name"]).endswith("-batch")]
    assert {doc["kind"] for doc in batch} == {"Service", "Trigger"}
    for doc in batch:
        if doc["kind"] == "Trigger":
            assert rows(at(doc, "spec")["filters"])[0] == {"exact": {"tenantid": "acme"}}
        else:
            assert scaling(doc)[SCALE + "scale-to-zero-pod-retention-period"] == "0s"


def test_an_overlay_whose_objects_the_cluster_has_once_without_saying_so_makes_no_tenant() -> None:
    text = "policy: {isolation: dedicated}\n"
    spec = TenantSpec(parse("acme.yaml", text, 0.0), text, Place("acme"))
    docs = copy.deepcopy(render(spec, ROOT / "knative/overlays/production-spot"))
    (low,) = (doc for doc in docs if doc["kind"] == "PriorityClass")
    del at(low, "metadata", "labels")["wakeswap.dev/once"]
    with pytest.raises(ConfigError, match="PriorityClass wakeswap-batch lies outside"):
        plan(spec, docs)

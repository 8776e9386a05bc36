"""Production's stage graph on one machine: its manifests as they are, less what only a cluster has, each by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.components import of_kind, rendered
from tests.contract.test_topology import STAGES
from tests.local.machine import Machine
from tests.local.test_pipeline import FACE, machine, post

__all__ = ["machine"]
pytestmark = pytest.mark.slow

Docs = list[dict[str, Any]]
BROUGHT = ("Namespace", "Secret", "ConfigMap", "IntegrationSource")
"""Kinds that this machine's own overlay brings: where the store is, who may do what, how uploads are heard of."""
BESIDE = "retention"
"""Objects of this name run by the hour beside the graph, as a CronJob; here retention is run by hand."""
POOL = ("nodeSelector", "tolerations")
"""Fields of a pod that name nodes."""
GPU, TOLD = "nvidia.com/gpu", ("WAKESWAP_DEVICE", "WAKESWAP_GPU_WAIT_SECONDS")
"""A limit of containers, and what their processes are told of it."""
BROKER = {"eventing.knative.dev/broker.class": "Kafka"}
"""The class that keeps the events there; this machine has its own."""


def rehearsed(docs: Docs) -> None:
    """Production's objects in place of the local overlay's, less what is named above. All of it must be there."""
    own = [doc for doc in docs if doc["kind"] in BROUGHT]
    stages: Docs = [doc for doc in json.loads(json.dumps(rendered("production"))) if doc["kind"] not in BROUGHT]
    taken: set[str] = set()
    for doc in stages:
        if doc["apiVersion"].startswith("serving."):
            taken |= without_nodes(doc["spec"]["template"]["spec"])
        if doc["kind"] == "Broker":
            assert doc["metadata"].pop("annotations") == BROKER
            assert doc["spec"].pop("config")
        if doc["kind"] == "CronJob":
            taken.add(doc["metadata"]["name"])
    assert taken == {*POOL, GPU, *TOLD, BESIDE}, "nothing is named here that production does not have"
    docs[:] = [*own, *(doc for doc in stages if doc["metadata"]["name"] != BESIDE)]


def without_nodes(pod: dict[str, Any]) -> set[str]:
    """What was taken out of a pod."""
    taken = {field for field in POOL if pod.pop(field, None)}
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        if container["resources"]["limits"].pop(GPU, None):
            taken.add(GPU)
        kept = [entry for entry in container.get("env", []) if entry["name"] not in TOLD]
        taken |= {entry["name"] for entry in container.get("env", []) if entry not in kept}
        container["env"] = kept
    return taken


@pytest.mark.timeout(300)
def test_the_graph_of_production_makes_a_picture(machine: Callable[..., Machine]) -> None:
    one = machine(rehearsed)
    one.up()
    status, answer = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg")
    assert (status, answer["status"]) == (200, "succeeded"), answer
    assert [entry["stage"] for entry in answer["stages"]] == ["moderate", "detect", "swap", "publish"]
    services = of_kind(rendered("production"), "Service", "serving.knative.dev")
    assert sorted(name.replace("-", "_") for name in services) == STAGES, "the same stages, so nothing was left out"

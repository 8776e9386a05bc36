"""The two overlays for clusters: production-spot is production, its batches on Services of their own."""

from __future__ import annotations

from typing import Any

import yaml

from tests.contract.components import ROOT, of_kind, rendered

OVERLAYS = ROOT / "knative/overlays"
MOST = "autoscaling.knative.dev/max-scale"
Docs = tuple[dict[str, Any], ...]


def listed(overlay: str) -> list[str]:
    kustomization = yaml.safe_load((OVERLAYS / overlay / "kustomization.yaml").read_text())
    return [name.rpartition("/")[2] for name in kustomization["components"]]


def gpus(overlay: str, *, batch: bool) -> int:
    """The most that the GPU Services of one kind may have together."""
    most = 0
    for name, service in of_kind(rendered(overlay), "Service", "serving.knative.dev").items():
        template = service["spec"]["template"]
        on_gpu = "nvidia.com/gpu" in template["spec"]["containers"][0]["resources"]["limits"]
        if on_gpu and name.endswith("-batch") == batch:
            most += int(template["metadata"]["annotations"][MOST])
    return most


def test_it_lists_what_production_lists_and_spot_batch_before_it() -> None:
    assert listed("production-spot") == ["spot-batch", *listed("production")]


def test_what_both_have_is_the_same_but_for_what_the_triggers_hear() -> None:
    plain, spot = rendered("production"), rendered("production-spot")
    for doc in plain:
        found = of_kind(spot, doc["kind"], doc["apiVersion"])[doc["metadata"]["name"]]
        if doc["kind"] == "Trigger":
            found = {**found, "spec": {**found["spec"], "filters": doc["spec"]["filters"]}}
        assert found == doc


def test_each_pool_has_as_many_gpus_as_its_file_says() -> None:
    assert (gpus("production", batch=False), gpus("production", batch=True)) == (4, 0)
    assert (gpus("production-spot", batch=False), gpus("production-spot", batch=True)) == (4, 3)


def test_production_is_watched() -> None:
    for overlay in ("production", "production-spot"):
        kinds = {doc["kind"] for doc in rendered(overlay)}
        assert kinds >= {"PodMonitor", "PrometheusRule"}, overlay
        config = of_kind(rendered(overlay), "ConfigMap")["wakeswap"]["data"]
        assert config["OTEL_EXPORTER_OTLP_ENDPOINT"], "traces go to the collector"
        reach = of_kind(rendered(overlay), "NetworkPolicy")
        assert {"scraping", "tracing"} <= set(reach), "through the closed network"

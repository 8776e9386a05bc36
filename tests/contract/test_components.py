"""Components change what they say: the caches, and the stages that share a process. Rules for all: test_manifests."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from infra.local.manifests import load
from tests.contract.components import BARE, CACHES, of_kind, rendered

SETS = [(cache,) for cache in CACHES] + [("fused-front", cache) for cache in CACHES] + [("fused-front",), ()]
MODELS = {"moderate", "detect", "swap", "enhance", "publish", "fused"}


def pods(components: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    services = of_kind(rendered(BARE, *components), "Service", "serving.knative.dev")
    return {name: service["spec"]["template"]["spec"] for name, service in services.items()}


def kinds(pod: dict[str, Any]) -> dict[str, str]:
    return {volume["name"]: next(key for key in volume if key != "name") for volume in pod.get("volumes", [])}


@pytest.mark.parametrize("cache", CACHES)
def test_only_who_may_write_fetches(cache: str) -> None:
    """A step on a read-only folder waits; one that fetches has a folder it can write to. Neither pretends."""
    for name, pod in pods(("fused-front", cache)).items():
        for init in pod.get("initContainers", []):
            (mount,) = (mount for mount in init["volumeMounts"] if mount["name"] == "models")
            stages = name.replace("-", "_").split() if name != "fused" else ["detect", "swap", "publish"]
            waits = ["--wait"] if mount.get("readOnly") else []
            assert init["command"] == ["python", "model-warmup/main.py", *waits, *stages]


@pytest.mark.parametrize("components", SETS, ids="+".join)
def test_a_job_can_have_a_model_fetched_wherever_the_folder_can_be_written(components: tuple[str, ...]) -> None:
    """Learned swappers, maskers and tenants' own versions are fetched when first asked for."""
    for name, pod in pods(components).items():
        mounts = [mount for container in pod["containers"] for mount in container.get("volumeMounts", [])]
        for mount in (mount for mount in mounts if mount["name"] == "models"):
            assert bool(mount.get("readOnly")) == (kinds(pod)["models"] == "hostPath"), name


def test_each_cache_is_of_the_kind_it_says() -> None:
    expected = {"cache-pod": "emptyDir", "node-cache-daemonset": "hostPath", "node-cache-pvc": "persistentVolumeClaim"}
    for cache, kind in expected.items():
        found = {name: kinds(pod)["models"] for name, pod in pods((cache,)).items() if "models" in kinds(pod)}
        found |= {"fused": kinds(pods(("fused-front", cache))["fused"])["models"]}
        assert set(found) == MODELS
        on_demand = {"enhance": "emptyDir"} if cache == "node-cache-daemonset" else {}
        assert found == {**dict.fromkeys(MODELS, kind), **on_demand}


@pytest.mark.parametrize("components", SETS, ids="+".join)
def test_every_stage_reads_the_tenants_files(components: tuple[str, ...]) -> None:
    (config,) = of_kind(rendered(BARE), "ConfigMap").values()
    for name, pod in pods(components).items():
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert volumes["tenants"]["configMap"] == {"name": "wakeswap-tenants", "optional": True}, name
        mount = next(mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == "tenants")
        assert mount["mountPath"] == config["data"]["WAKESWAP_TENANTS_FOLDER"]
        assert "subPath" not in mount, "a file mounted so does not follow its ConfigMap"


def test_the_nodes_folder_is_the_one_that_services_mount() -> None:
    (daemon,) = of_kind(rendered(BARE, "node-cache-daemonset"), "DaemonSet").values()
    pod = daemon["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["python", "model-warmup/main.py", "--watch", "--all"]
    assert not container["volumeMounts"][0].get("readOnly")
    assert container["image"].startswith("wakeswap:")
    swap = pods(("node-cache-daemonset",))["swap"]
    volumes = [volume for volume in swap["volumes"] if volume["name"] != "scratch"]
    assert pod["volumes"] == volumes, "and the tenants, whose policies name versions"
    assert container["volumeMounts"][0]["mountPath"] == swap["containers"][0]["volumeMounts"][0]["mountPath"]
    (config,) = of_kind(rendered(BARE), "ConfigMap").values()
    assert config["data"]["WAKESWAP_MODEL_CACHE"] == container["volumeMounts"][0]["mountPath"]


@pytest.mark.parametrize("components", [("cache-pod",), ("fused-front",), ("fused-front", "cache-pod")], ids="+".join)
def test_the_local_platform_plays_them(components: tuple[str, ...], tmp_path: Any) -> None:
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(rendered("local", *components)))
    services = load(file, lambda _, templates: dict(templates)).services
    assert ("fused" in services) == ("fused-front" in components)

"""A dedicated tenant as it is really planned, from each overlay: every rule for manifests holds for it too."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infra.platform.check import findings
from infra.platform.cli import manifests
from infra.platform.configs import Configs
from infra.platform.stack import Stack
from infra.tenants import scale
from infra.tenants.objects import Object, at, containers, key_of, services
from infra.tenants.plan import plan
from infra.tenants.rendering import OVERLAY, render
from infra.tenants.secret_plan import templates
from infra.tenants.spec import Place, TenantSpec
from shared.errors import ConfigError
from shared.tenancy.folder import parse
from tests.contract.schemas import schemas

QUEUE = "arn:aws:sqs:eu-central-1:000000000000:acme-uploads"
TEXT = f"policy: {{isolation: dedicated}}\ndedicated: {{gpus: 3, queue: '{QUEUE}'}}\n"


@cache
def planned(name: str) -> tuple[Object, ...]:
    spec = TenantSpec(parse(f"{name}.yaml", TEXT, 0.0), TEXT, Place(name))
    return tuple(plan(spec, render(spec, OVERLAY)))


def of_kind(name: str, kind: str) -> dict[str, Any]:
    return {str(at(one, "metadata")["name"]): one for one in planned(name) if one["kind"] == kind}


def test_a_cluster_takes_it_and_means_what_we_mean() -> None:
    docs = list(planned("acme"))
    found = findings(Stack(docs, Configs.of(manifests(Stack(docs))), schemas()))
    assert not found, "\n".join(map(str, found))


def test_two_tenants_share_no_object_and_neither_knows_the_other_or_the_shared_stages() -> None:
    long = "z" * 40
    assert not {key_of(one) for one in planned("acme")} & {key_of(one) for one in planned(long)}
    assert long not in json.dumps(planned("acme"))
    for one in planned("acme"):
        assert at(one, "metadata").get("namespace", "tenant-acme") == "tenant-acme"
        namespaces = [value for part in _parts(one) for name, value in part.items() if name == "namespace"]
        assert set(namespaces) <= {"tenant-acme"}, key_of(one)


def test_it_has_all_that_stands_for_a_tenant_of_its_own() -> None:
    kinds = {str(one["kind"]) for one in planned("acme")}
    assert kinds >= {
        *("Namespace", "ResourceQuota", "LimitRange", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding"),
        *("Secret", "Broker", "Trigger", "Service", "SinkBinding", "PingSource"),
    }
    silent = [one for one in of_kind("acme", "NetworkPolicy").values() if one["spec"]["podSelector"] == {}]
    assert any(not one["spec"].get("ingress") and not one["spec"].get("egress") for one in silent), "deny by default"
    assert {"intake", "swap", "publish", "dead-letter"} <= {
        str(at(one, "metadata")["name"]) for one in services(planned("acme"))
    }


def test_each_secret_that_is_referred_to_is_planned_and_has_a_value_from_somewhere() -> None:
    found = of_kind("acme", "Secret")
    made = {name for name, one in found.items() if templates(one)}
    assert made >= {"wakeswap-events", "wakeswap-intake", "wakeswap-notify"}
    assert set(found) - made == {"wakeswap-store", "wakeswap-uploads"}, "brought: docs/tenants.md says so"


def test_its_gpus_are_never_asked_for_twice_and_its_quota_holds_every_stage() -> None:
    hard = of_kind("acme", "ResourceQuota")["tenant"]["spec"]["hard"]
    scales = {str(at(one, "metadata")["name"]): _scale(one) for one in services(planned("acme"))}
    gpus = {name: scales[name] for name in ("swap", "enhance")}
    assert (sum(gpus.values()), hard["requests.nvidia.com/gpu"]) == (3, "3")
    assert sum(scales.values()) <= scale.quantity(hard["pods"])


def test_its_processes_refuse_every_other_tenant() -> None:
    assert of_kind("acme", "ConfigMap")["wakeswap"]["data"]["WAKESWAP_ONLY_TENANT"] == "acme"
    for one in services(planned("acme")):
        (container,) = containers(one)
        assert {"configMapRef": {"name": "wakeswap"}} in container["envFrom"], key_of(one)  # type: ignore[operator]
        assert "WAKESWAP_ONLY_TENANT" not in {entry["name"] for entry in container["env"]}  # type: ignore[index, union-attr, call-overload]


def test_its_uploads_come_from_its_own_queue() -> None:
    assert of_kind("acme", "IntegrationSource")["uploads"]["spec"]["aws"]["sqs"]["arn"] == QUEUE


@pytest.mark.parametrize("broken", ["resources: [missing.yaml]", "nonsense"])
def test_an_overlay_that_cannot_be_rendered_is_named(tmp_path: Path, broken: str) -> None:
    (tmp_path / "kustomization.yaml").write_text(broken)
    spec = TenantSpec(parse("acme.yaml", TEXT, 0.0), TEXT, Place("acme"))
    for overlay in (tmp_path, tmp_path / "none"):
        with pytest.raises(ConfigError) as caught:
            render(spec, overlay)
        assert caught.value.context["field"] == "--overlay"


def _scale(one: Object) -> int:
    annotations = at(one, "spec", "template", "metadata", "annotations")
    return int(str(annotations["autoscaling.knative.dev/max-scale"]))


def _parts(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(part for inner in value.values() for part in _parts(inner))]
    return [part for inner in value for part in _parts(inner)] if isinstance(value, list) else []

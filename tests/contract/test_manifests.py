"""Every overlay and every component passes every rule, against the schemas of its kinds and the settings it needs."""

from __future__ import annotations

import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.platform.check import findings
from infra.platform.cli import manifests
from infra.platform.configs import AUTOSCALER, DEFAULTS, OTHERS, Configs
from infra.platform.needs import needs
from infra.platform.rules.probes import deadline
from infra.platform.stack import Stack
from shared.settings import Settings
from tests.contract.components import BARE, CACHES, COMPONENTS, ROOT, of_kind, render, rendered
from tests.contract.schemas import schemas
from tests.contract.test_topology import OVERLAYS

Docs = tuple[dict[str, Any], ...]
ALONE = [name for name in COMPONENTS if name != "dedicated-tenant"]
TOGETHER: list[tuple[str, ...]] = [("fused-front", "gpu"), *((cache, "gpu") for cache in CACHES)]
TOGETHER += [
    ("spot-batch", "gpu"),
    ("fused-front", "spot-batch", "node-cache-daemonset", "gpu"),
    ("spot-batch", "rabbitmq-broker"),
]
EVERY = [(name, ()) for name in OVERLAYS] + [(BARE, ()), *((BARE, (name,)) for name in ALONE)]
EVERY += [(BARE, names) for names in TOGETHER] + [(name, ("spot-batch",)) for name in OVERLAYS]


def everything_allowed(docs: Docs) -> Configs:
    """A cluster whose settings are what these manifests need; that production's are is looked at below."""
    return Configs.of(manifests(Stack(docs)))


@pytest.mark.parametrize(("overlay", "components"), EVERY, ids=lambda value: str(value) or "bare")
def test_a_cluster_takes_it_and_means_what_we_mean(overlay: str, components: tuple[str, ...]) -> None:
    docs = rendered(overlay, *components)
    found = findings(Stack(docs, everything_allowed(docs), schemas()))
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize(("overlay", "components"), EVERY, ids=lambda value: str(value) or "bare")
def test_every_kind_has_a_schema(overlay: str, components: tuple[str, ...]) -> None:
    strange = {doc["kind"] for doc in rendered(overlay, *components) if not schemas().knows(doc)}
    assert strange == set(), "tests/contract/schemas.py: name its schema, or write a minimal one"


@pytest.mark.parametrize(("overlay", "components"), EVERY, ids=lambda value: str(value) or "bare")
def test_no_process_stops_at_a_setting_that_is_none(overlay: str, components: tuple[str, ...]) -> None:
    """What a container is told in so many words; what its Secrets hold nobody knows here."""
    docs = rendered(overlay, *components)
    configs = {name: doc.get("data", {}) for name, doc in of_kind(docs, "ConfigMap").items()}
    for service in Stack(docs).services:
        for container in service.containers:
            told = [configs[source["configMapRef"]["name"]] for source in container.sources if "configMapRef" in source]
            environ = {name: value for data in told for name, value in data.items()}
            environ |= {str(entry["name"]): str(entry["value"]) for entry in container.env if "value" in entry}
            Settings.from_environment(environ)


def test_a_tenants_own_namespace_is_as_the_readme_says() -> None:
    docs = of_tenant()
    found = findings(Stack(docs, everything_allowed(docs), schemas()))
    assert not found, "\n".join(map(str, found))
    assert {doc["metadata"].get("namespace", "tenant-acme") for doc in docs} == {"tenant-acme"}
    (namespace,) = of_kind(docs, "Namespace").values()
    assert namespace["metadata"]["name"] == "tenant-acme"
    assert namespace["metadata"]["labels"]["wakeswap.dev/tenant"] == "acme"
    assert not re.search(r"\bTENANT\b", yaml.safe_dump_all(docs)), "every place that waits for the tenant's name has it"


def test_a_tenants_triggers_hear_its_own_events_only() -> None:
    plain, own = of_kind(rendered(BARE), "Trigger"), of_kind(of_tenant(), "Trigger")
    assert own.keys() == plain.keys()
    for name, trigger in own.items():
        first = trigger["spec"]["filters"][0]
        outside = name == "intake"  # from the queue and the clock, which know no tenants
        assert (first == {"exact": {"tenantid": "acme"}}) != outside, name


def test_a_tenant_has_its_gpus_and_no_more() -> None:
    (quota,) = of_kind(of_tenant(), "ResourceQuota").values()
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "2"
    (binding,) = of_kind(of_tenant(), "RoleBinding").values()
    assert [subject["name"] for subject in binding["subjects"]] == ["wakeswap:acme"]
    for role in of_kind(of_tenant(), "Role").values():
        for rule in role["rules"]:
            assert set(rule["verbs"]) <= {"get", "list", "watch"}
            assert not {"secrets", "configmaps", "*"} & set(rule["resources"])


@cache
def of_tenant() -> Docs:
    """The overlay that the component's README shows."""
    text = (ROOT / "knative/components/dedicated-tenant/README.md").read_text()
    files = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", text, re.DOTALL))
    assert set(files) == {"kustomization.yaml", "tenant.yaml"}
    with tempfile.TemporaryDirectory() as folder:
        overlay = Path(shutil.copytree(ROOT / "knative", Path(folder) / "knative")) / "overlays/acme"
        overlay.mkdir()
        for name, content in files.items():
            (overlay / name).write_text(content)
        return render(overlay)


def test_the_platform_has_what_production_needs_and_no_flag_more() -> None:
    written, needed = render(ROOT / "knative/platform"), manifests(Stack(rendered("production")))
    assert by_name(written) == by_name(needed), "knative/platform: python -m infra.platform flags"


def by_name(docs: Any) -> dict[str, Any]:
    return {f"{doc['metadata']['namespace']}/{doc['metadata']['name']}": doc["data"] for doc in docs}


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_says_when_to_use_it_and_which_settings_it_needs(component: str) -> None:
    readme = (ROOT / "knative/components" / component / "README.md").read_text()
    assert "**When:**" in readme or component == "fused-front"
    if component == "dedicated-tenant":  # what it needs is what the other components of its overlay need
        return
    bare = {need.key for need in needs(Stack(rendered(BARE))) if differs(need)}
    own = {need.key for need in needs(Stack(rendered(BARE, component))) if differs(need)} - bare
    named = set(re.findall(r"`(kubernetes\.[a-z-]+|allow-zero-initial-scale)`", readme))
    assert own <= named, f"{component}/README.md"


def differs(need: Any) -> bool:
    """Whether Knative as it is installed lacks it."""
    return not need.is_met(Configs())


def test_cold_06_a_roll_out_on_one_gpu_waits_for_nobody() -> None:
    """Ready without a pod, no pod at rest: the new revision never waits for the GPU that the old one keeps."""
    docs = rendered(BARE, "gpu")
    stack = Stack(docs, everything_allowed(docs))
    on_gpu = [service for service in stack.services if service.has_gpu]
    assert {service.name for service in on_gpu} == {"swap", "enhance"}
    for service in on_gpu:
        assert (service.scale["min-scale"], service.scale["initial-scale"]) == ("0", "0")
        assert int(service.scale["max-scale"]) >= 1
        (container,) = service.serving
        (patience,) = [int(entry["value"]) for entry in container.env if entry["name"] == "WAKESWAP_GPU_WAIT_SECONDS"]
        probe = container.spec["startupProbe"]
        assert patience < probe["periodSeconds"] * probe["failureThreshold"] < deadline(service)
    assert any(need.config == AUTOSCALER for need in needs(stack))
    readme = (ROOT / "knative/components/gpu/README.md").read_text()
    assert "## A roll-out when there is one GPU" in readme


def test_the_defaults_are_those_that_knative_ships() -> None:
    """Flags and numbers of tests/data/knative/configs, which are the ConfigMaps of the releases."""
    for config, file in SHIPPED.items():
        doc = yaml.safe_load((ROOT / "tests/data/knative/configs" / file).read_text())
        text = doc["data"].get("_example") or yaml.safe_dump(doc["data"])
        shipped = {key: str(value).lower() for key, value in yaml.safe_load(text).items()}
        assert {key: shipped[key] for key in DEFAULTS[config] if key in shipped} == {
            key: value for key, value in DEFAULTS[config].items() if key in shipped
        }
        assert set(DEFAULTS[config]) - set(shipped) <= {"autodetect-http2"}
        assert set(shipped) == (DEFAULTS[config].keys() | OTHERS.get(config, set())) & set(shipped), "none unknown"
        assert OTHERS.get(config, frozenset()) <= set(shipped)


SHIPPED = {config: f"{config.namespace.removeprefix('knative-')}-{config.name}.yaml" for config in DEFAULTS}

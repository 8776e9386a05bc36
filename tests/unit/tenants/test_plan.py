"""A tenant's file becomes objects: always the same, all its own, with names that a cluster takes."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from infra.tenants import bucket_policy, scale
from infra.tenants.objects import at, key_of
from infra.tenants.plan import plan
from infra.tenants.secret_plan import templates
from infra.tenants.spec import Place
from shared.errors import ConfigError
from tests.unit.tenants.clusters import DEDICATED, SERVING, item, rendered, service, spec

LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
GPU = {"requests": {"cpu": 2, "memory": "8Gi"}, "limits": {"memory": "8Gi", "nvidia.com/gpu": 1}}
QUEUE = "arn:aws:sqs:eu-west-1:000000000000:acme-uploads"


def dedicated(name: str, text: str = DEDICATED, *more: Any) -> list[Any]:
    asked = spec(name, text)
    return plan(asked, rendered(asked.place, *more))


def by_name(objects: list[Any]) -> dict[str, Any]:
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in objects}


def test_the_same_file_gives_the_same_objects() -> None:
    asked = spec("acme", DEDICATED)
    base = rendered(asked.place)
    before = copy.deepcopy(base)
    first = json.dumps(plan(asked, base))
    assert first == json.dumps(plan(asked, base)) == json.dumps(plan(asked, base[::-1]))
    assert base == before, "what it is made from stays as it was"


def test_two_tenants_share_no_object_and_no_word() -> None:
    one, other = dedicated("acme"), dedicated("zebra")
    assert not {key_of(item) for item in one} & {key_of(item) for item in other}
    assert "zebra" not in json.dumps(one)
    assert "acme" not in json.dumps(other)
    (a,), (b,) = (plan(spec(name, "{}\n")) for name in ("acme", "zebra"))
    assert key_of(a) == key_of(b), "shared tenants are in one directory"
    assert not at(a, "data").keys() & at(b, "data").keys(), "and each owns a key of its own there"


@pytest.mark.parametrize("name", ["a", "a" * 40, "a" + "-" * 38 + "z", "0" * 40])
def test_names_are_what_a_cluster_takes(name: str) -> None:
    for one in [*dedicated(name), *plan(spec(name, "{}\n"))]:
        metadata = one["metadata"]
        for label in (metadata["name"], metadata.get("namespace", "x"), *metadata.get("labels", {}).values()):
            assert LABEL.fullmatch(label), label
        assert all(len(text) <= 63 for key in metadata.get("labels", {}) for text in key.split("/"))
    assert len(Place(name).manager) <= 128


def test_everything_is_marked_and_in_its_place() -> None:
    objects = dedicated("acme")
    assert objects[0]["kind"] == "Namespace"
    for one in objects:
        assert one["metadata"].get("namespace", "tenant-acme") == "tenant-acme"
        assert one["metadata"]["labels"]["wakeswap.dev/tenant"] == "acme"
        assert one["metadata"]["annotations"]["wakeswap.dev/owner"] == "wakeswap/acme"
    kinds = objects[0]["metadata"]["annotations"]["wakeswap.dev/kinds"].split(",")
    assert {f"{one['apiVersion']}/{one['kind']}" for one in objects[1:]} == set(kinds)
    order = [one["kind"] for one in objects]
    assert order.index("Broker") < order.index("Service") < order.index("Trigger")


def test_the_file_is_there_as_people_wrote_it_and_the_store_is_a_part_of_the_bucket() -> None:
    text = "# ours\npolicy: {isolation: dedicated}\n"
    found = by_name(dedicated("acme", text))
    assert found["ConfigMap/wakeswap-tenants"]["data"] == {"acme.yaml": text}
    assert found["ConfigMap/wakeswap"]["data"] == {
        "WAKESWAP_STORE_URL": "s3://wakeswap/dedicated/acme",
        "WAKESWAP_TENANTS": "{}",
    }
    (shared,) = plan(spec("acme", "{}\n", "staging"))
    assert (shared["data"], at(shared, "metadata")["namespace"]) == ({"acme.yaml": "{}\n"}, "staging")


def test_secrets_have_names_and_no_values() -> None:
    brought = item("v1", "Secret", "tenant-acme", "wakeswap-events", data={"WAKESWAP_EVENT_KEYS": "c2hhcmVk"})
    objects = dedicated("acme", DEDICATED, brought)
    assert "c2hhcmVk" not in json.dumps(objects), "nor any that the overlay has: it would sign for everybody"
    found = {name: one for name, one in by_name(objects).items() if one["kind"] == "Secret"}
    assert found.keys() == {"Secret/wakeswap-events", "Secret/wakeswap-store"}
    assert all("data" not in one and "stringData" not in one for one in found.values())
    assert templates(found["Secret/wakeswap-events"]) == {"WAKESWAP_EVENT_KEYS": "k1={random}"}
    assert templates(found["Secret/wakeswap-store"]) == {}


def test_a_value_that_nobody_knows_how_to_make_is_named() -> None:
    strange = service("tenant-acme", "more")
    container = strange["spec"]["template"]["spec"]["containers"][0]
    container["env"].append({"name": "X", "valueFrom": {"secretKeyRef": {"name": "wakeswap-events", "key": "X"}}})
    with pytest.raises(ConfigError, match="wakeswap-events: it is not known how X is made"):
        dedicated("acme", DEDICATED, strange)


@pytest.mark.parametrize(("gpus", "scales"), [(1, ("1", "1")), (2, ("1", "1")), (5, ("4", "1"))])
def test_gpus_are_shared_out(gpus: int, scales: tuple[str, str]) -> None:
    base = rendered(Place("acme"))
    others = [one for one in base if one["kind"] != "Service"]
    text = f"{DEDICATED}dedicated: {{gpus: {gpus}}}\n"
    more = [service("tenant-acme", "enhance", **GPU), service("tenant-acme", "swap", **GPU)]
    found = by_name(plan(spec("acme", text), [*others, *more]))
    annotations = [
        found[f"Service/{name}"]["spec"]["template"]["metadata"]["annotations"] for name in ("swap", "enhance")
    ]
    assert tuple(one["autoscaling.knative.dev/max-scale"] for one in annotations) == scales


def test_a_tenant_without_gpus_has_no_stage_that_needs_one() -> None:
    with pytest.raises(ConfigError, match="enhance need a GPU") as caught:
        dedicated("acme", DEDICATED, service("tenant-acme", "enhance", **GPU))
    assert caught.value.context["field"] == "dedicated.gpus"


def test_the_quota_has_room_for_all_stages_or_is_what_the_tenant_says() -> None:
    hard = by_name(dedicated("acme"))["ResourceQuota/tenant"]["spec"]["hard"]
    assert scale.quantity(hard["requests.cpu"]) >= 4 * (0.5 + scale.QUEUE_PROXY_CPU)
    assert (hard["requests.memory"], hard["limits.memory"], hard["pods"]) == ("4Gi", "8Gi", "10")
    text = DEDICATED + "dedicated: {cpus: 1, memory_gib: 2}\n"
    hard = by_name(dedicated("acme", text))["ResourceQuota/tenant"]["spec"]["hard"]
    assert (hard["requests.cpu"], hard["requests.memory"]) == ("1", "2Gi")
    with pytest.raises(ConfigError, match="at least 3") as caught:
        dedicated("acme", text, service("tenant-acme", "big", requests={"cpu": "2500m", "memory": "1Gi"}))
    assert caught.value.context["field"] == "dedicated.cpus"


@pytest.mark.parametrize(
    ("text", "number"),
    [("100m", 0.1), (2, 2.0), ("1.5", 1.5), ("64Mi", 2**26), ("1G", 1e9), ("1Ki", 1024), ("1e3", 1000)],
)
def test_quantities(text: Any, number: float) -> None:
    assert scale.quantity(text) == pytest.approx(number)
    for wrong in ("", "-1", "1e", "1 Gi", "1GB", None, True, "Gi"):
        with pytest.raises(ConfigError):
            scale.quantity(wrong)


def test_a_queue_is_the_tenants_own_or_there_is_none() -> None:
    sqs = {"arn": "arn:aws:sqs:eu-central-1:000000000000:everybodys", "region": "eu-central-1"}
    source = item(
        "sources.knative.dev/v1alpha1", "IntegrationSource", "tenant-acme", "uploads", spec={"aws": {"sqs": sqs}}
    )
    assert "everybodys" not in json.dumps(dedicated("acme", DEDICATED, source))
    found = by_name(dedicated("acme", f"{DEDICATED}dedicated: {{queue: '{QUEUE}'}}\n", source))
    assert found["IntegrationSource/uploads"]["spec"]["aws"]["sqs"] == {"arn": QUEUE, "region": "eu-west-1"}
    assert sqs["arn"].endswith("everybodys")


@pytest.mark.parametrize(
    "stray",
    [
        item("rbac.authorization.k8s.io/v1", "ClusterRole", "", "all"),
        item("v1", "ConfigMap", "knative-serving", "config-features"),
        item("v1", "Namespace", "", "wakeswap"),
    ],
)
def test_nothing_lies_outside_of_the_namespace(stray: Any) -> None:
    with pytest.raises(ConfigError, match="lies outside of tenant-acme"):
        dedicated("acme", DEDICATED, stray)


def test_the_bucket_policy_opens_the_tenants_part_and_what_models_all_share() -> None:
    objects = dedicated("acme")
    own = bucket_policy.document(objects, Place("acme"))
    assert "arn:aws:s3:::wakeswap/dedicated/acme/*" in json.dumps(own)
    assert "models" not in json.dumps(own)
    by_name(objects)["ConfigMap/wakeswap"]["data"]["WAKESWAP_MODEL_BUCKET"] = "s3://weights/eu"
    both = bucket_policy.document(objects, Place("acme"))
    statements: Any = both["Statement"]
    assert len(statements) == 4
    reads = next(one for one in statements if one["Sid"] == "Models")
    assert reads["Action"] == ["s3:GetObject"]
    assert "arn:aws:s3:::weights/eu/models/tenants/acme/*" in reads["Resource"]
    for one in statements:  # nothing that another tenant's key, or the bucket as a whole, would match
        resources = one["Resource"] if isinstance(one["Resource"], list) else []
        prefixes = [text.partition("/")[2] for text in resources] or one["Condition"]["StringLike"]["s3:prefix"]
        assert prefixes
        for prefix in prefixes:
            assert re.fullmatch(
                r"dedicated/acme/\*|eu/models/(?:sha256|index|channels|derived|tenants/acme)/\*", prefix
            )


def test_a_service_without_a_largest_scale_fits_no_quota() -> None:
    endless = service("tenant-acme", "endless")
    endless["spec"]["template"]["metadata"]["annotations"] = {}
    with pytest.raises(ConfigError, match="Service endless has no"):
        dedicated("acme", DEDICATED, endless)
    assert endless["apiVersion"] == SERVING


@pytest.mark.parametrize("name", ["", "A", "a" * 41, "-a", "a.b", "a/b"])
def test_what_is_no_tenants_name_is_nowhere(name: str) -> None:
    with pytest.raises(ConfigError):
        Place(name)

"""A plan on a cluster: applied twice it changes nothing, and whatever is not the tenant's stays as it is."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from infra.tenants import applying
from infra.tenants.applying import How, delete
from infra.tenants.errors import ClusterError
from infra.tenants.plan import plan
from tests.servers.kubernetes_api import KubernetesApi
from tests.unit.tenants.clusters import DEDICATED, EVENTING, SERVING, Server, item, rendered, service, told


def data_of(secret: Any) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}


def stable(state: dict[str, Any]) -> dict[str, Any]:
    """Without what says when: two servers, or two tries, are then alike."""
    moving = ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation", "selfLink")
    return {
        name: one and {**one, "data": sorted(one.get("data", ())) if name.startswith("Secret") else one.get("data"),
                       "metadata": {key: value for key, value in one["metadata"].items() if key not in moving}}
        for name, one in state.items()
    }  # fmt: skip


def test_applied_twice_nothing_changes(server: Server) -> None:
    first = server.apply("acme")
    before = server.state("acme")
    assert set(first.values()) == {"created"}
    assert set(first) >= {"Namespace/" + server.place("acme").namespace, "Secret/wakeswap-store", "Trigger/swap"}
    again = server.apply("acme")
    assert set(again.values()) == {"unchanged"}
    assert again.keys() == first.keys()
    assert server.state("acme") == before, "not even a resourceVersion"


def test_a_changed_policy_changes_its_file_and_nothing_else(server: Server) -> None:
    server.apply("acme")
    before = server.state("acme")
    done = server.apply("acme", "policy: {isolation: dedicated, max_concurrent: 3}\n")
    assert [name for name, what in done.items() if what != "unchanged"] == ["ConfigMap/wakeswap-tenants"]
    after = server.state("acme")
    assert {name for name in after if after[name] != before[name]} == {"ConfigMap/wakeswap-tenants"}
    assert after["ConfigMap/wakeswap-tenants"]["data"] == {
        f"{server.prefix}acme.yaml": "policy: {isolation: dedicated, max_concurrent: 3}\n"
    }


def test_shared_tenants_have_one_key_each_of_one_config_map(server: Server) -> None:
    assert server.apply("a", "{}\n") == {"ConfigMap/wakeswap-tenants": "created"}
    assert server.apply("b", "policy: {priority: batch}\n") == {"ConfigMap/wakeswap-tenants": "changed"}
    assert server.apply("a", "{}\n") == {"ConfigMap/wakeswap-tenants": "unchanged"}
    directory = server.state("a")["directory"]
    a, b = server.place("a").entry, server.place("b").entry
    assert directory["data"] == {a: "{}\n", b: "policy: {priority: batch}\n"}
    told([*delete(server.cluster, server.place("a"), data=False, dry_run=False)])
    assert server.state("a")["directory"]["data"] == {b: "policy: {priority: batch}\n"}


def test_what_others_put_into_the_directory_is_taken_over_only_by_force(server: Server) -> None:
    entry = server.place("a").entry
    server.put(item("v1", "ConfigMap", server.installation, "wakeswap-tenants", data={entry: "{}", "other.yaml": "{}"}))
    with pytest.raises(ClusterError, match="--force") as caught:
        server.apply("a", "policy: {priority: batch}\n")
    assert f"data.{entry}" in caught.value.detail
    assert "somebody-else" in caught.value.detail
    server.apply("a", "policy: {priority: batch}\n", force=True)
    assert server.state("a")["directory"]["data"] == {entry: "policy: {priority: batch}\n", "other.yaml": "{}"}


def test_prune_takes_what_the_plan_no_longer_has_and_nothing_else(server: Server) -> None:
    place, other = server.place("acme"), server.place("other")
    namespace = place.namespace
    more = [service(namespace, "enhance"), item("v1", "PersistentVolumeClaim", namespace, "models", spec=CLAIM),
            item(EVENTING, "Trigger", namespace, "enhance", spec=TRIGGER)]  # fmt: skip
    server.apply("acme", DEDICATED, *more)
    server.apply("other", DEDICATED, service(other.namespace, "enhance"))
    ours = server.get(SERVING, "Service", namespace, "enhance")["metadata"]
    foreign = item("v1", "ConfigMap", namespace, "unlabelled", data={"a": "b"})
    stray = item("v1", "ConfigMap", namespace, "another-tenants", data={"a": "b"})
    half = item("v1", "ConfigMap", namespace, "label-only", data={"a": "b"})
    child = item("v1", "ConfigMap", namespace, "child", data={"a": "b"})
    stray["metadata"]["labels"] = {**ours["labels"], "wakeswap.dev/tenant": other.name}
    half["metadata"]["labels"] = child["metadata"]["labels"] = ours["labels"]
    child["metadata"]["annotations"] = {"wakeswap.dev/owner": place.owner}
    owner = {"apiVersion": SERVING, "kind": "Service", "name": "swap", "uid": ours["uid"]}
    child["metadata"]["ownerReferences"] = [owner]
    for thing in (foreign, stray, half, child):
        server.put(thing)
    before = server.state("other")

    done = server.apply("acme")

    gone = {name for name, what in done.items() if what == "deleted"}
    assert gone == {"Service/enhance", "Trigger/enhance"}
    left = server.state("acme")
    kept = {"unlabelled", "another-tenants", "label-only", "child"}
    assert {f"ConfigMap/{name}" for name in kept} <= left.keys()
    assert "PersistentVolumeClaim/models" in left, "what holds data is no leftover"
    assert "Service/swap" in left
    assert server.state("other") == before
    assert set(server.apply("acme").values()) == {"unchanged"}


def test_a_kind_that_is_planned_no_more_is_pruned_too(server: Server) -> None:
    """The Namespace knows which kinds were ever put into it."""
    namespace = server.place("acme").namespace
    server.apply("acme", DEDICATED, item(EVENTING, "Trigger", namespace, "more", spec=TRIGGER))
    asked = server.spec("acme", DEDICATED)
    fewer = [one for one in rendered(asked.place) if one["kind"] not in ("Trigger", "Broker")]
    done = told([*applying.apply(server.cluster, asked, plan(asked, fewer), How())])
    assert {name for name, what in done.items() if what == "deleted"} == {
        "Trigger/more",
        "Trigger/swap",
        "Broker/default",
    }
    assert not {name for name in server.state("acme") if name.startswith(("Trigger", "Broker"))}
    assert "Trigger" not in server.state("acme")["Namespace"]["metadata"]["annotations"]["wakeswap.dev/kinds"]


def test_secrets_are_made_once_and_brought_ones_kept(server: Server) -> None:
    server.apply("acme")
    namespace = server.place("acme").namespace
    made = data_of(server.get("v1", "Secret", namespace, "wakeswap-events"))
    assert len(made["WAKESWAP_EVENT_KEYS"]) == len("k1=") + 64
    brought = {"wakeswap-store": {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"}}
    done = server.apply("acme", brought=brought)
    assert [name for name, what in done.items() if what == "changed"] == ["Secret/wakeswap-store"]
    assert set(server.apply("acme").values()) == {"unchanged"}
    assert data_of(server.get("v1", "Secret", namespace, "wakeswap-store")) == brought["wakeswap-store"]
    assert data_of(server.get("v1", "Secret", namespace, "wakeswap-events")) == made
    new = {"wakeswap-events": {"WAKESWAP_EVENT_KEYS": "k2=" + "n" * 32}}
    assert server.apply("acme", brought=new)["Secret/wakeswap-events"] == "changed", "keys can be changed"
    assert data_of(server.get("v1", "Secret", namespace, "wakeswap-events")) == new["wakeswap-events"]
    server.apply("other")
    other = data_of(server.get("v1", "Secret", server.place("other").namespace, "wakeswap-events"))
    assert other != made, "no tenant's events are believed in another's namespace"


def test_dry_run_changes_nothing(server: Server) -> None:
    assert set(server.apply("acme", dry_run=True).values()) == {"created", "unchecked"}
    assert server.state("acme")["Namespace"] is None
    server.apply("acme")
    before = server.state("acme")
    namespace = server.place("acme").namespace
    done = server.apply(
        "acme", DEDICATED + "webhook: {url: https://a.example}\n", service(namespace, "new"), dry_run=True
    )
    assert done["ConfigMap/wakeswap-tenants"] == "changed"
    assert done["Service/new"] == "created"
    told([*delete(server.cluster, server.place("acme"), data=True, dry_run=True)])
    assert server.state("acme") == before


def test_what_is_somebody_elses_is_not_taken_over(server: Server) -> None:
    place = server.place("acme")
    server.put(item("v1", "Namespace", "", place.namespace))
    with pytest.raises(ClusterError, match=f"Namespace {place.namespace} is there already"):
        server.apply("acme")
    assert not server.cluster.list(EVENTING, "Broker", place.namespace)
    assert set(server.apply("acme", force=True).values()) == {"changed", "created"}


def test_two_installations_do_not_share_a_namespace(server: Server) -> None:
    server.apply("acme")
    elsewhere = Server(server.kubeconfig, server.context, "staging", server.prefix)
    with pytest.raises(ClusterError, match="was not made for staging/"):
        elsewhere.apply("acme")


def test_isolation_is_not_changed_under_way(server: Server) -> None:
    server.apply("acme", "{}\n")
    with pytest.raises(ClusterError, match="is among the shared tenants"):
        server.apply("acme")
    told([*delete(server.cluster, server.place("acme"), data=False, dry_run=False)])
    server.apply("acme")
    with pytest.raises(ClusterError, match="has stages of its own"):
        server.apply("acme", "{}\n")
    told([*delete(server.cluster, server.place("acme"), data=False, dry_run=False)])
    assert server.apply("acme", "{}\n") == {"ConfigMap/wakeswap-tenants": "changed"}


def test_delete_keeps_volumes_and_whatever_is_not_ours(server: Server) -> None:
    place = server.place("acme")
    claim = item("v1", "PersistentVolumeClaim", place.namespace, "models", spec=CLAIM)
    server.apply("acme", DEDICATED, claim)
    server.apply("other")
    server.put(item("v1", "ConfigMap", place.namespace, "notes", data={"a": "b"}))
    before = server.state("other")
    done = told([*delete(server.cluster, place, data=False, dry_run=False)])
    assert done["Secret/wakeswap-store"] == "deleted", "credentials are access, not data"
    assert next(iter(done)) == "Trigger/swap", "first what brings work"
    left = server.state("acme")
    assert left.keys() == {"ConfigMap/notes", "PersistentVolumeClaim/models", "Namespace", "directory"}
    assert server.state("other") == before
    assert told([*delete(server.cluster, place, data=False, dry_run=False)]) == {}, "done is done"
    server.apply("acme", DEDICATED, claim)
    told([*delete(server.cluster, place, data=True, dry_run=False)])
    gone = server.get("v1", "Namespace", "", place.namespace)
    assert gone is None or gone["metadata"]["deletionTimestamp"]
    assert server.state("other") == before


def test_a_tenant_that_is_not_there_cannot_be_deleted(server: Server) -> None:
    server.put(item("v1", "Namespace", "", server.place("acme").namespace))
    for data in (False, True):
        with pytest.raises(ClusterError, match="has no tenant"):
            told([*delete(server.cluster, server.place("acme"), data=data, dry_run=False)])
    assert (
        server.get("v1", "Namespace", "", server.place("acme").namespace)["metadata"].get("deletionTimestamp") is None
    )


@pytest.mark.slow
def test_cut_off_anywhere_doing_it_again_gives_the_same(fake: Server, api: KubernetesApi) -> None:
    """Applied with one stage more, then without it, cut off at every request of either."""
    more = service(fake.place("acme").namespace, "enhance")
    fake.apply("acme", DEDICATED, more)
    with_more = stable(fake.state("acme"))
    fake.apply("acme")
    without = stable(fake.state("acme"))
    told([*delete(fake.cluster, fake.place("acme"), data=True, dry_run=False)])
    for stop in range(200):
        api.fail_after = stop
        try:
            fake.apply("acme", DEDICATED, more)
            cut = False
        except ClusterError:
            cut = True
        api.fail_after = None
        fake.apply("acme", DEDICATED, more)
        assert stable(fake.state("acme")) == with_more, stop
        api.fail_after = stop
        try:
            fake.apply("acme")
        except ClusterError:
            cut = True
        api.fail_after = None
        fake.apply("acme")
        assert stable(fake.state("acme")) == without, stop
        if not cut:
            break
    else:
        pytest.fail("never got through")


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TRIGGER = {"broker": "default", "subscriber": {"ref": {"apiVersion": SERVING, "kind": "Service", "name": "enhance"}}}

"""What the tests of the cluster's commands share: small manifests, tenants, and the command on an API server."""

from __future__ import annotations

import copy
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.tenants import cluster
from infra.tenants.applying import Change, How, apply
from infra.tenants.objects import Key, Object, name_of
from infra.tenants.plan import plan
from infra.tenants.spec import Place, TenantSpec
from shared.tenancy.folder import parse

DEDICATED = "policy: {isolation: dedicated}\n"
SERVING, EVENTING = "serving.knative.dev/v1", "eventing.knative.dev/v1"


def spec(name: str, text: str, installation: str = "wakeswap") -> TenantSpec:
    return TenantSpec(parse(f"{name}.yaml", text, 0.0), text, Place(name, installation))


def item(api: str, kind: str, namespace: str, name: str, **parts: Any) -> Any:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **copy.deepcopy(parts)}


def service(namespace: str, name: str, **resources: Any) -> Any:
    container = {
        "name": name,
        "image": "wakeswap:0.1.0",
        "env": [
            {"name": "E", "valueFrom": {"secretKeyRef": {"name": "wakeswap-events", "key": "WAKESWAP_EVENT_KEYS"}}}
        ],
        "envFrom": [{"secretRef": {"name": "wakeswap-store", "optional": True}}],
        "resources": resources or {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
    }
    template = {
        "metadata": {"annotations": {"autoscaling.knative.dev/max-scale": "4"}},
        "spec": {"containers": [container]},
    }
    return item(SERVING, "Service", namespace, name, spec={"template": template})


def rendered(place: Place, *more: Object) -> list[Object]:
    """A small installation, as an overlay and the component `dedicated-tenant` would come out of kustomize."""
    namespace = place.namespace
    delivery = {"retry": 10, "backoffPolicy": "exponential"}
    trigger = {"broker": "default", "filters": [{"exact": {"tenantid": place.name}}], "delivery": delivery,
               "subscriber": {"ref": {"apiVersion": SERVING, "kind": "Service", "name": "swap"}}}  # fmt: skip
    hard = {"pods": "10", "requests.cpu": "1", "requests.memory": "1Gi", "limits.memory": "2Gi"}
    return [
        item("v1", "Namespace", "", namespace),
        item("v1", "ResourceQuota", namespace, "tenant", spec={"hard": hard}),
        item("v1", "ConfigMap", namespace, "wakeswap", data={"WAKESWAP_STORE_URL": "s3://wakeswap"}),
        item("v1", "ServiceAccount", namespace, "swap", automountServiceAccountToken=False),
        item(EVENTING, "Broker", namespace, "default", spec={}),
        service(namespace, "swap"),
        item(EVENTING, "Trigger", namespace, "swap", spec=trigger),
        *more,
    ]


@dataclass(frozen=True)
class Server:
    """An API server, and names that nobody else uses on it."""

    kubeconfig: Path
    context: str
    installation: str
    prefix: str

    @property
    def cluster(self) -> cluster.KubernetesCluster:
        return cluster.KubernetesCluster.connect(str(self.kubeconfig), self.context)

    def spec(self, name: str, text: str) -> TenantSpec:
        return spec(self.prefix + name, text, self.installation)

    def place(self, name: str) -> Place:
        return Place(self.prefix + name, self.installation)

    def apply(self, name: str, text: str = DEDICATED, *more: Object, **how: Any) -> dict[str, str]:
        """What happened, by object."""
        asked = self.spec(name, text)
        objects = plan(asked, rendered(asked.place, *more) if asked.is_dedicated else ())
        return told([*apply(self.cluster, asked, objects, How(**how))])

    def get(self, api: str, kind: str, namespace: str, name: str) -> Any:
        return self.cluster.get(api, Key(api.rpartition("/")[0], kind, namespace, name))

    def put(self, thing: Object, manager: str = "somebody-else") -> Any:
        return self.cluster.apply(thing, manager, dry_run=False, force=True)

    def state(self, name: str) -> dict[str, Any]:
        """Every object of the tenant's namespace, and of the directory, as the server keeps them."""
        namespace = self.place(name).namespace
        found: dict[str, Any] = {}
        for api, kind in KINDS:
            for one in self.cluster.list(api, kind, namespace):
                if name_of(one) not in MADE_BY_THE_CLUSTER:
                    found[f"{kind}/{name_of(one)}"] = one
        found["Namespace"] = self.get("v1", "Namespace", "", namespace)
        found["directory"] = self.get("v1", "ConfigMap", self.installation, "wakeswap-tenants")
        return found


KINDS = [
    *(("v1", kind) for kind in ("ConfigMap", "Secret", "ServiceAccount", "ResourceQuota", "PersistentVolumeClaim")),
    (EVENTING, "Broker"),
    (EVENTING, "Trigger"),
    (SERVING, "Service"),
]
MADE_BY_THE_CLUSTER = ("kube-root-ca.crt", "default")


def told(changes: list[Change]) -> dict[str, str]:
    return {f"{change.key.kind}/{change.key.name}": change.what for change in changes}


def environment(kubeconfig: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WAKESWAP_")}
    return {**kept, "KUBECONFIG": str(kubeconfig)}

"""Which of the cluster's settings an overlay needs, and why: pod fields that Knative takes only behind a flag, an
initial scale of 0, timeouts over the cluster's limit.

Knows Knative's feature flags (knative.md section 1.2), not what a cluster has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from infra.platform.configs import AUTOSCALER, EVENTING_FEATURES, FEATURES, POD, SERVING_DEFAULTS, Config, Configs
from infra.platform.stack import Container, Doc, Service, Stack, listing, mapping, name_of, spec_of

ENABLED = ("enabled", "allowed")
_FIELDS = {
    "initContainers": "init-containers",
    "nodeSelector": "nodeselector",
    "topologySpreadConstraints": "topologyspreadconstraints",
    "securityContext": "securitycontext",
    "hostIPC": "hostipc",
    "hostPID": "hostpid",
    "hostNetwork": "hostnetwork",
    "hostAliases": "hostaliases",
    **{
        field: field.lower()
        for field in (
            *("affinity", "tolerations", "runtimeClassName", "schedulerName", "priorityClassName"),
            *("shareProcessNamespace", "dnsPolicy", "dnsConfig"),
        )
    },
}
_VOLUMES = {
    "emptyDir": "volumes-emptydir",
    "hostPath": "volumes-hostpath",
    "csi": "volumes-csi",
    "ephemeral": "volumes-ephemeral",
    "image": "volumes-image",
    "persistentVolumeClaim": "persistent-volume-claim",
}


class Need(NamedTuple):
    config: Config
    key: str
    wanted: str
    """A flag's value, or the least number."""
    where: str
    """Kind, name and field that need it."""

    def is_met(self, configs: Configs) -> bool:
        value = configs.value(self.config, self.key)
        if self.wanted.isdigit():
            return int(value) >= int(self.wanted)
        return value in ENABLED if self.wanted in ENABLED else value == self.wanted


def needs(stack: Stack) -> Iterator[Need]:
    """Every need of every object; several may need the same."""
    for service in stack.services:
        yield from _of_pod(service)
        yield from _of_scale(service)
        for container in service.containers:
            yield from _of_container(service, container)
    for kind in ("Trigger", "Broker"):
        for doc in stack.of(kind, "eventing.knative.dev/"):
            yield from _of_delivery(doc)


def missing(stack: Stack) -> list[Need]:
    """Those that the stack's configs do not meet, one for each setting."""
    found = {(need.config, need.key): need for need in needs(stack) if not need.is_met(stack.configs)}
    return list(found.values())


def _flag(name: str, where: str) -> Need:
    return Need(FEATURES, POD + name, "enabled", where)


def _of_pod(service: Service) -> Iterator[Need]:
    for field, flag in _FIELDS.items():
        if service.pod.get(field):
            yield _flag(flag, f"{service.where}: {field}")
    for volume, kind in service.volumes.items():
        if kind in _VOLUMES:
            yield _flag(_VOLUMES[kind], f"{service.where}: volume {volume}")
    if len(service.serving) > 1:
        yield Need(FEATURES, "multi-container", "enabled", f"{service.where}: containers")


def _of_scale(service: Service) -> Iterator[Need]:
    if service.scale.get("initial-scale") == "0":
        yield Need(AUTOSCALER, "allow-zero-initial-scale", "true", f"{service.where}: initial-scale")
    if service.scale.get("min-scale", "0") == "0":
        yield Need(AUTOSCALER, "enable-scale-to-zero", "true", f"{service.where}: min-scale")
    limits = {"timeoutSeconds": "max-revision-timeout-seconds"}
    limits["containerConcurrency"] = "container-concurrency-max-limit"
    for field, key in limits.items():
        value = service.pod.get(field)
        if isinstance(value, int):
            yield Need(SERVING_DEFAULTS, key, str(value), f"{service.where}: {field}")


def _of_container(service: Service, container: Container) -> Iterator[Need]:
    for mount in container.mounts:
        if mount.get("mountPropagation"):
            yield _flag("volumes-mount-propagation", f"{container.where}.volumeMounts")
        if service.volumes.get(str(mount.get("name"))) == "persistentVolumeClaim" and not mount.get("readOnly"):
            yield _flag("persistent-volume-write", f"{container.where}.volumeMounts")
    for entry in container.env:
        if {"fieldRef", "resourceFieldRef"} & set(mapping(entry.get("valueFrom"))):
            yield _flag("fieldref", f"{container.where}.env")
    capabilities = mapping(mapping(container.spec.get("securityContext")).get("capabilities"))
    if listing(capabilities.get("add")):
        key = "kubernetes.containerspec-addcapabilities"
        yield Need(FEATURES, key, "enabled", f"{container.where}.securityContext.capabilities")


def _of_delivery(doc: Doc) -> Iterator[Need]:
    delivery = mapping(spec_of(doc).get("delivery"))
    for field, key in (("timeout", "delivery-timeout"), ("retryAfterMax", "delivery-retryafter")):
        if field in delivery:
            yield Need(EVENTING_FEATURES, key, "enabled", f"{name_of(doc)}: delivery.{field}")
    if "brokerRef" in spec_of(doc):
        yield Need(EVENTING_FEATURES, "cross-namespace-event-links", "enabled", f"{name_of(doc)}: brokerRef")

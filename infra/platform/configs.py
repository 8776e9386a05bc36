"""What a cluster's own ConfigMaps say, with Knative's defaults where they say nothing.

The defaults are those of Knative Serving 1.23 and Eventing 1.22 (their config/core/configmaps). Knative reads a flag
whatever its case but not with a space beside it, and takes every value that it does not know for the default without a
word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Config(NamedTuple):
    """A ConfigMap of Knative's."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.namespace})"


FEATURES = Config("knative-serving", "config-features")
AUTOSCALER = Config("knative-serving", "config-autoscaler")
SERVING_DEFAULTS = Config("knative-serving", "config-defaults")
EVENTING_FEATURES = Config("knative-eventing", "config-features")

POD = "kubernetes.podspec-"
_OFF = "disabled"
_FLAGS = (
    *("affinity", "topologyspreadconstraints", "hostaliases", "nodeselector", "tolerations", "fieldref"),
    *("runtimeclassname", "dnspolicy", "dnsconfig", "securitycontext", "shareprocessnamespace", "hostipc", "hostpid"),
    *("hostnetwork", "priorityclassname", "schedulername", "volumes-image", "volumes-hostpath", "volumes-ephemeral"),
    *("volumes-csi", "init-containers", "persistent-volume-claim", "persistent-volume-write"),
    "volumes-mount-propagation",
)
DEFAULTS: dict[Config, dict[str, str]] = {
    FEATURES: {
        **{POD + name: _OFF for name in _FLAGS},
        POD + "volumes-emptydir": "enabled",
        "kubernetes.containerspec-addcapabilities": _OFF,
        "multi-container": "enabled",
        "multi-container-probing": _OFF,
        "tag-header-based-routing": _OFF,
        "autodetect-http2": _OFF,
        "secure-pod-defaults": _OFF,
        "queueproxy.mount-podinfo": _OFF,
        "queueproxy.resource-defaults": _OFF,
    },
    AUTOSCALER: {"allow-zero-initial-scale": "false", "enable-scale-to-zero": "true"},
    SERVING_DEFAULTS: {"max-revision-timeout-seconds": "600", "container-concurrency-max-limit": "1000"},
    EVENTING_FEATURES: {
        **dict.fromkeys(("kreference-group", "kreference-mapping", "delivery-retryafter"), _OFF),
        **dict.fromkeys(("eventtype-auto-create", "authentication-oidc", "new-apiserversource-filters"), _OFF),
        **dict.fromkeys(("transport-encryption", "cross-namespace-event-links"), _OFF),
        "default-authorization-mode": "allow-same-namespace",
        "delivery-timeout": "enabled",
    },
}
OTHERS: dict[Config, frozenset[str]] = {
    AUTOSCALER: frozenset(
        {
            *("activator-capacity", "container-concurrency-target-default", "container-concurrency-target-percentage"),
            *("initial-scale", "max-scale", "max-scale-down-rate", "max-scale-limit", "max-scale-up-rate", "min-scale"),
            *("panic-threshold-percentage", "panic-window-percentage", "pod-autoscaler-class", "scale-down-delay"),
            *("requests-per-second-target-default", "scale-to-zero-grace-period", "stable-window"),
            *("scale-to-zero-pod-retention-period", "target-burst-capacity"),
        }
    ),
    SERVING_DEFAULTS: frozenset(
        {
            *("allow-container-concurrency-zero", "container-concurrency", "container-name-template"),
            *("enable-service-links", "init-container-name-template", "revision-timeout-seconds"),
            *("revision-idle-timeout-seconds", "revision-response-start-timeout-seconds"),
            *(
                f"revision-{resource}-{end}"
                for resource in ("cpu", "memory", "ephemeral-storage")
                for end in ("request", "limit")
            ),
        }
    ),
}
"""Keys that Knative reads and no need of ours is about."""
_FLAG = frozenset({"enabled", "allowed", "disabled"})
_TRUTH = frozenset({"true", "false"})
_KNOWN = {
    "secure-pod-defaults": frozenset({"disabled", "allowrootbounded", "enabled"}),
    "transport-encryption": frozenset({"disabled", "permissive", "strict"}),
    "default-authorization-mode": frozenset({"allow-all", "deny-all", "allow-same-namespace"}),
}


@dataclass(frozen=True)
class Configs:
    written: Mapping[Config, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, docs: Iterable[Mapping[str, Any]]) -> Configs:
        """From documents, of which those that are no ConfigMap of Knative's are left out; the last of a key wins."""
        written: dict[Config, dict[str, str]] = {}
        for doc in docs:
            metadata, data = doc.get("metadata"), doc.get("data")
            if doc.get("kind") != "ConfigMap" or not isinstance(metadata, Mapping) or not isinstance(data, Mapping):
                continue
            config = Config(str(metadata.get("namespace")), str(metadata.get("name")))
            if config in DEFAULTS:
                data = {key: str(value) for key, value in data.items() if key != "_example"}
                written.setdefault(config, {}).update(data)
        return cls(written)

    def value(self, config: Config, key: str) -> str:
        """What holds for this key, in lower case."""
        known = {**DEFAULTS[config], **self.written.get(config, {})}
        text = known[key].lower()
        return text if text in allowed(config, key) or text.isdigit() else DEFAULTS[config][key]


def allowed(config: Config, key: str) -> frozenset[str]:
    """The words that Knative knows for this key, in lower case; none for a number."""
    if key in _KNOWN:
        return _KNOWN[key]
    default = DEFAULTS[config].get(key, "")
    return _FLAG if default in _FLAG else _TRUTH if default in _TRUTH else frozenset()

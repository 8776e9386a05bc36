"""What every stage of this product needs from its manifest, whatever overlay it is in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infra.platform.rules.registry import rule
from infra.platform.stack import Stack, listing, mapping, name_of, spec_of

EVENT_KEYS = "WAKESWAP_EVENT_KEYS"
PUBLISHERS = frozenset({"intake", "split", "assemble", "dead-letter"})
"""Stages that publish outside of a reply, and so need K_SINK."""
_SECRET = re.compile(r"(SECRET|TOKEN|PASSWORD|_KEYS?$|ACCESS_KEY)")
_NO_SECRET = frozenset({"WAKESWAP_JWT_PUBLIC_KEY"})


@rule("event-keys", "A stage without the keys refuses to start; with others it refuses every event.")
def event_keys(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        for container in service.serving:
            entries = [entry for entry in container.env if entry.get("name") == EVENT_KEYS]
            secret = mapping(mapping(entries[0].get("valueFrom")).get("secretKeyRef")) if entries else {}
            if secret.get("key") != EVENT_KEYS or secret.get("optional"):
                yield f"{container.where}.env", f"needs {EVENT_KEYS} from a Secret"


@rule("secret-in-plain", "What stands in a manifest is in git, and in every `kubectl get`.")
def secret_in_plain(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        for entry in container.env:
            name = str(entry.get("name"))
            if _SECRET.search(name) and name not in _NO_SECRET and entry.get("value"):
                yield f"{container.where}.env[{name}]", "must come from a Secret"
    for config in stack.of("ConfigMap"):
        for name, value in mapping(config.get("data")).items():
            if _SECRET.search(name) and name not in _NO_SECRET and value:
                yield f"{name_of(config)}: data[{name}]", "must be in a Secret"


@rule("concurrency", "Requests over the process's threads wait where no autoscaler counts them.")
def concurrency(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        slots = service.pod.get("containerConcurrency")
        said = [entry.get("value") for each in service.serving for entry in each.env if _is(entry, "CONCURRENCY")]
        if not slots or said != [str(slots)]:
            says = f"is {slots}, WAKESWAP_CONCURRENCY {', '.join(map(str, said)) or 'not set'}"
            yield f"{service.where}: spec.template.spec.containerConcurrency", says


@rule("device", "A GPU that the process was not told of is paid for and not used.")
def device(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        for container in service.serving:
            said = [entry.get("value") for entry in container.env if _is(entry, "DEVICE")]
            if (container.limit("nvidia.com/gpu") is not None) != (said == ["gpu"]):
                yield f"{container.where}.env", "WAKESWAP_DEVICE=gpu and a limit of nvidia.com/gpu belong together"


@rule("sink-missing", "Without a SinkBinding there is no K_SINK, and what is accepted is published nowhere.")
def sink_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    bound = {str(mapping(spec_of(doc).get("subject")).get("name")) for doc in stack.of("SinkBinding")}
    for service in stack.services:
        if service.name in PUBLISHERS and service.name not in bound:
            yield service.where, "publishes, and no SinkBinding names it"


@rule("config-missing", "A pod whose ConfigMap does not exist waits for it, in silence, until the progress deadline.")
def config_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        for source in container.sources:
            ref = mapping(source.get("configMapRef"))
            if ref and not ref.get("optional") and not stack.has("ConfigMap", ref.get("name")):
                yield f"{container.where}.envFrom", f"there is no ConfigMap {ref.get('name')}"


@rule("account-missing", "No pod can be made for a ServiceAccount that does not exist; the default one is everybody's.")
def account_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        name = service.pod.get("serviceAccountName")
        if not stack.has("ServiceAccount", name):
            yield f"{service.where}: spec.template.spec.serviceAccountName", f"there is no ServiceAccount {name}"


@rule(
    "visibility",
    "Without the label the world reaches the stage, and is taken for the broker.",
)
def visibility(stack: Stack) -> Iterator[tuple[str, str]]:
    for service in stack.services:
        labels = mapping(mapping(service.doc.get("metadata")).get("labels"))
        if labels.get("networking.knative.dev/visibility") != "cluster-local":
            yield f"{service.where}: metadata.labels", "must have networking.knative.dev/visibility: cluster-local"


@rule("command", "An image without an entrypoint of its own starts nothing.")
def command(stack: Stack) -> Iterator[tuple[str, str]]:
    for _, container in stack.containers():
        if not listing(container.spec.get("command")):
            yield f"{container.where}.command", "is missing"


def _is(entry: object, name: str) -> bool:
    return mapping(entry).get("name") == f"WAKESWAP_{name}"

"""Documents become one Manifests object: all that this platform plays, by kind, checked against itself.

Knows which kinds there are and where each is parsed. A kind that is not here is refused by name, as is a reference
to something that is not in the stack.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.annotations import refuse_unknown_annotations
from infra.local.eventing.spec import Broker, Destination, Trigger, parse_broker, parse_trigger
from infra.local.fields import (
    NOT_IMPLEMENTED,
    ManifestError,
    below,
    mapping_at,
    refuse_unknown,
    required_text,
    text_at,
    text_mapping_at,
)
from infra.local.serving.environment import Configs
from infra.local.serving.model import ServiceSpec
from infra.local.serving.spec import parse_service
from infra.local.sinks.spec import JobSink, parse_job_sink
from infra.local.sources.spec import (
    BucketSource,
    PingSource,
    SinkBinding,
    parse_binding,
    parse_bucket,
    parse_ping,
)
from infra.local.yamldocs import read_documents

GENERATE = "local.wakeswap.dev/generate"
FOLDER = "local.wakeswap.dev/folder"

Generate = Callable[[str, Mapping[str, str]], dict[str, str]]
"""(name of the object, templates) -> values; see StateDir.generated."""


@dataclass(slots=True)
class Manifests:
    """Everything one overlay asks for. `generated` holds the values that were made here, by object name."""

    services: dict[str, ServiceSpec] = field(default_factory=dict)
    brokers: list[Broker] = field(default_factory=list)
    triggers: list[Trigger] = field(default_factory=list)
    pings: list[PingSource] = field(default_factory=list)
    buckets: list[BucketSource] = field(default_factory=list)
    bindings: list[SinkBinding] = field(default_factory=list)
    job_sinks: list[JobSink] = field(default_factory=list)
    data: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    generated: dict[str, dict[str, str]] = field(default_factory=dict)
    folders: dict[tuple[str, str], str] = field(default_factory=dict)
    """The folder whose files stand for an object's keys, as its annotation says."""

    def configs(self, resolve: Callable[[str], Path]) -> Configs:
        """Data of all ConfigMaps and Secrets for the pods. `resolve`: an annotation's folder as a path."""
        return Configs(self.data, {key: resolve(folder) for key, folder in self.folders.items()})

    def destinations(self) -> Iterable[tuple[str, Destination]]:
        """(who points, to what) for every sink and subscriber."""
        for trigger in self.triggers:
            yield f"Trigger/{trigger.name}: spec.subscriber", trigger.subscriber
            if trigger.delivery and trigger.delivery.dead_letter_sink:
                yield f"Trigger/{trigger.name}: spec.delivery.deadLetterSink", trigger.delivery.dead_letter_sink
        for broker in self.brokers:
            if broker.delivery and broker.delivery.dead_letter_sink:
                yield f"Broker/{broker.name}: spec.delivery.deadLetterSink", broker.delivery.dead_letter_sink
        sources: list[PingSource | BucketSource | SinkBinding] = [*self.pings, *self.buckets, *self.bindings]
        for source in sources:
            yield f"{type(source).__name__}/{source.name}: spec.sink", source.sink


def load(source: Path, generate: Generate) -> Manifests:
    """Read and check an overlay, a folder or a file; raises ManifestError with kind, name and field."""
    manifests = Manifests()
    for document in read_documents(source):
        _add(manifests, document, generate)
    _check(manifests)
    return manifests


def _add(manifests: Manifests, document: Mapping[str, object], generate: Generate) -> None:
    kind, api = text_at(document, "kind", "") or "", text_at(document, "apiVersion", "") or ""
    name = mapping_at(document, "metadata", "").get("name")
    handler = _KINDS.get((api, kind))
    if handler is None:
        raise ManifestError(f"{kind or 'document'}/{name}", f"kind {kind!r} of {api!r} is {NOT_IMPLEMENTED}")
    try:
        handler(manifests, document, generate)
    except ManifestError as error:
        raise ManifestError(f"{kind}/{name}: {error.field}", error.reason) from error


def _check(manifests: Manifests) -> None:
    brokers = {broker.key for broker in manifests.brokers}
    job_sinks = {f"{sink.namespace}/{sink.name}" for sink in manifests.job_sinks}
    known = {"Broker": brokers, "Service": manifests.services.keys(), "JobSink": job_sinks}
    for trigger in manifests.triggers:
        if trigger.broker_key not in brokers:
            raise ManifestError(f"Trigger/{trigger.name}: spec.broker", f"there is no Broker {trigger.broker_key}")
    for binding in manifests.bindings:
        if not (binding.labels or binding.subject in manifests.services):
            raise ManifestError(f"SinkBinding/{binding.name}: spec.subject.name", f"no Service {binding.subject}")
    for where, destination in manifests.destinations():
        ref = destination.ref
        if ref is None:
            continue
        wanted = ref.name if ref.kind == "Service" else f"{ref.namespace}/{ref.name}"
        if wanted not in known.get(ref.kind, ()):
            raise ManifestError(f"{where}.ref", f"there is no {ref.kind} {wanted}")


def _service(manifests: Manifests, document: Mapping[str, object], _: Generate) -> None:
    spec = parse_service(document)
    if spec.name in manifests.services:
        raise ManifestError("metadata.name", f"{spec.name!r} is used twice")
    manifests.services[spec.name] = spec


def _namespace(_: Manifests, document: Mapping[str, object], __: Generate) -> None:
    refuse_unknown(document, {"apiVersion", "kind", "metadata"}, "")


def _without_effect(_: Manifests, __: Mapping[str, object], ___: Generate) -> None:
    """Who a pod is to a cluster and which packets may reach it: one machine has neither."""


def _config_map(manifests: Manifests, document: Mapping[str, object], generate: Generate) -> None:
    refuse_unknown(document, {"apiVersion", "kind", "metadata", "data", "immutable"}, "")
    _store(manifests, document, text_mapping_at(document, "data", ""), generate)


def _secret(manifests: Manifests, document: Mapping[str, object], generate: Generate) -> None:
    refuse_unknown(document, {"apiVersion", "kind", "metadata", "type", "data", "stringData", "immutable"}, "")
    if (text_at(document, "type", "") or "Opaque") != "Opaque":
        raise ManifestError("type", f"{document['type']!r} is {NOT_IMPLEMENTED}, only Opaque is")
    values = {key: _decoded(key, value) for key, value in text_mapping_at(document, "data", "").items()}
    _store(manifests, document, {**values, **text_mapping_at(document, "stringData", "")}, generate)


def _decoded(key: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ManifestError(below("data", key), "is not the base64 of text") from error


def _store(manifests: Manifests, document: Mapping[str, object], values: Mapping[str, str], generate: Generate) -> None:
    metadata = mapping_at(document, "metadata", "")
    refuse_unknown(metadata, {"name", "namespace", "labels", "annotations"}, "metadata")
    name, kind = required_text(metadata, "name", "metadata"), str(document["kind"])
    annotations = text_mapping_at(metadata, "annotations", "metadata")
    refuse_unknown_annotations(annotations, {GENERATE, FOLDER}, "metadata.annotations")
    if FOLDER in annotations:
        manifests.folders[(kind, name)] = annotations[FOLDER]
    made: dict[str, str] = {}
    if GENERATE in annotations:
        made = generate(f"{kind.lower()}-{name}", _templates(annotations[GENERATE]))
        manifests.generated[name] = made
    if (kind, name) in manifests.data:
        raise ManifestError("metadata.name", f"{name!r} is used twice")
    manifests.data[(kind, name)] = {**values, **made}


def _templates(text: str) -> dict[str, str]:
    where = below("metadata.annotations", GENERATE)
    try:
        templates = json.loads(text)
    except ValueError as error:
        raise ManifestError(where, f"is not JSON: {error}") from error
    if not isinstance(templates, dict) or not all(isinstance(value, str) for value in templates.values()):
        raise ManifestError(where, "must be a JSON object of texts")
    return templates


_KINDS: dict[tuple[str, str], Callable[[Manifests, Mapping[str, object], Generate], None]] = {
    ("v1", "Namespace"): _namespace,
    ("v1", "ServiceAccount"): _without_effect,
    ("networking.k8s.io/v1", "NetworkPolicy"): _without_effect,
    ("v1", "ConfigMap"): _config_map,
    ("v1", "Secret"): _secret,
    ("serving.knative.dev/v1", "Service"): _service,
    ("eventing.knative.dev/v1", "Broker"): lambda manifests, doc, _: manifests.brokers.append(parse_broker(doc)),
    ("eventing.knative.dev/v1", "Trigger"): lambda manifests, doc, _: manifests.triggers.append(parse_trigger(doc)),
    ("sources.knative.dev/v1", "PingSource"): lambda manifests, doc, _: manifests.pings.append(parse_ping(doc)),
    ("sources.knative.dev/v1", "SinkBinding"): lambda manifests, doc, _: manifests.bindings.append(parse_binding(doc)),
    ("sinks.knative.dev/v1alpha1", "JobSink"): lambda manifests, doc, _: manifests.job_sinks.append(
        parse_job_sink(doc)
    ),
    ("sources.knative.dev/v1alpha1", "IntegrationSource"): (
        lambda manifests, doc, _: manifests.buckets.append(parse_bucket(doc))
    ),
}

"""Brokers and Triggers as their manifests say, and nothing they say left out.

Parses `eventing.knative.dev/v1` documents (plain mappings) into frozen dataclasses; every field that the local
broker does not play is refused with its full path. Knows the manifests, not how events travel.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urljoin, urlsplit

from infra.local.eventing.duration import parse_duration
from infra.local.eventing.filters import Filter, parse_filter
from infra.local.fields import (
    ManifestError,
    below,
    integer_at,
    mapping_at,
    refuse_unknown,
    required_text,
    text_at,
    text_mapping_at,
)

API_VERSION = "eventing.knative.dev/v1"

BackoffPolicy = Literal["linear", "exponential"]
Format = Literal["binary", "json"]

_BROKER_ANNOTATIONS = {"eventing.knative.dev/broker.class", "eventing.knative.dev/creator"}
_DELIVERY_FIELDS = {"retry", "backoffPolicy", "backoffDelay", "timeout", "deadLetterSink"}
_DELIVERY_NOTES = {"retryAfterMax": "feature flag delivery-retryafter, disabled by default in Knative too"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A Kubernetes object that can be addressed."""

    api_version: str
    kind: str
    name: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Destination:
    """Where events go: an object, a URL, or a path (`uri`) below an object's address."""

    ref: Reference | None
    uri: str | None

    def url(self, base: str | None = None) -> str:
        """The whole URL; `base` is the address of `ref`, needed where there is one."""
        return urljoin(base or "", self.uri or "")

    def cluster_url(self, url: str) -> str:
        """`url` as a cluster would name it, since receivers of dead letters read the Service's name from it."""
        if self.ref is None:
            return url
        return urljoin(f"http://{self.ref.name}.{self.ref.namespace}.svc.cluster.local/", self.uri or "")

    def __str__(self) -> str:
        name = f"{self.ref.kind}/{self.ref.namespace}/{self.ref.name}" if self.ref else ""
        return f"{name}{self.uri or ''}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """How often and how fast one event is tried. Seconds; attempts = retry + 1; a timeout of None is the broker's."""

    retry: int = 0
    backoff_policy: BackoffPolicy | None = None
    backoff_delay: float | None = None
    timeout: float | None = None
    dead_letter_sink: Destination | None = None
    format: Format = "binary"


@dataclass(frozen=True, slots=True)
class Broker:
    """One Broker; `delivery` is None where the manifest leaves it to the defaults."""

    namespace: str
    name: str
    delivery: Delivery | None

    @property
    def key(self) -> str:
        """`namespace/name`, unique in one platform."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Trigger:
    """One Trigger: events of `broker` that pass `filter` go to `subscriber`."""

    namespace: str
    name: str
    broker: str
    filter: Filter
    subscriber: Destination
    delivery: Delivery | None

    @property
    def key(self) -> str:
        """`namespace/name`, unique in one platform."""
        return f"{self.namespace}/{self.name}"

    @property
    def broker_key(self) -> str:
        """The key of the broker, which lives in the Trigger's namespace."""
        return f"{self.namespace}/{self.broker}"


def parse_broker(doc: Mapping[str, object]) -> Broker:
    """A Broker document; ManifestError names the first field that is wrong or not implemented."""
    namespace, name = _identity(doc, "Broker", _BROKER_ANNOTATIONS)
    spec = mapping_at(doc, "spec", "")
    refuse_unknown(spec, {"delivery"}, "spec")
    delivery = _parse_delivery(spec, namespace, _DELIVERY_FIELDS) if "delivery" in spec else None
    return Broker(namespace, name, delivery)


def parse_trigger(doc: Mapping[str, object]) -> Trigger:
    """A Trigger document; ManifestError names the first field that is wrong or not implemented."""
    namespace, name = _identity(doc, "Trigger", {"eventing.knative.dev/creator"})
    spec = mapping_at(doc, "spec", "")
    refuse_unknown(
        spec,
        {"broker", "filter", "filters", "subscriber", "delivery"},
        "spec",
        {"brokerRef": "feature flag cross-namespace-event-links; name the Broker in spec.broker"},
    )
    return Trigger(
        namespace=namespace,
        name=name,
        broker=required_text(spec, "broker", "spec"),
        filter=parse_filter(spec, "spec"),
        subscriber=parse_destination(spec, "subscriber", "spec", namespace),
        delivery=_parse_delivery(spec, namespace, {*_DELIVERY_FIELDS, "format"}) if "delivery" in spec else None,
    )


def parse_destination(parent: Mapping[str, object], key: str, path: str, namespace: str) -> Destination:
    """The `{ref, uri}` under `key`; a ref without a namespace means `namespace`, the owner's."""
    value, where = mapping_at(parent, key, path), below(path, key)
    refuse_unknown(value, {"ref", "uri"}, where)
    ref = _parse_reference(value, where, namespace) if "ref" in value else None
    uri = text_at(value, "uri", where)
    if ref is None and not uri:
        raise ManifestError(where, "must have a ref or a uri")
    if ref is None and urlsplit(uri or "").scheme not in {"http", "https"}:
        raise ManifestError(below(where, "uri"), "must be an http or https URL where there is no ref")
    if ref is not None and uri and not uri.startswith("/"):
        raise ManifestError(below(where, "uri"), "must be an absolute path where there is a ref")
    return Destination(ref, uri)


def _identity(doc: Mapping[str, object], kind: str, annotations: set[str]) -> tuple[str, str]:
    refuse_unknown(doc, {"apiVersion", "kind", "metadata", "spec"}, "")
    if doc.get("apiVersion") != API_VERSION or doc.get("kind") != kind:
        raise ManifestError("apiVersion, kind", f"must be {API_VERSION} {kind}")
    metadata = mapping_at(doc, "metadata", "")
    refuse_unknown(metadata, {"name", "namespace", "labels", "annotations"}, "metadata")
    written = text_mapping_at(metadata, "annotations", "metadata")
    ours = {key: value for key, value in written.items() if key.partition("/")[0].endswith("knative.dev")}
    refuse_unknown(ours, annotations, "metadata.annotations")
    return text_at(metadata, "namespace", "metadata") or "default", required_text(metadata, "name", "metadata")


def _parse_reference(parent: Mapping[str, object], path: str, namespace: str) -> Reference:
    value, where = mapping_at(parent, "ref", path), below(path, "ref")
    refuse_unknown(value, {"apiVersion", "kind", "name", "namespace"}, where)
    return Reference(
        api_version=required_text(value, "apiVersion", where),
        kind=required_text(value, "kind", where),
        name=required_text(value, "name", where),
        namespace=text_at(value, "namespace", where) or namespace,
    )


def _parse_delivery(spec: Mapping[str, object], namespace: str, allowed: set[str]) -> Delivery:
    value, path = mapping_at(spec, "delivery", "spec"), "spec.delivery"
    notes = {**_DELIVERY_NOTES, "format": "only a Trigger has it"}
    refuse_unknown(value, allowed, path, notes)
    sink = parse_destination(value, "deadLetterSink", path, namespace) if "deadLetterSink" in value else None
    return Delivery(
        retry=integer_at(value, "retry", path, minimum=0) or 0,
        backoff_policy=_policy(text_at(value, "backoffPolicy", path)),
        backoff_delay=_seconds(value, "backoffDelay", path),
        timeout=_timeout(value, path),
        dead_letter_sink=sink,
        format=_format(text_at(value, "format", path)),
    )


def _policy(value: str | None) -> BackoffPolicy | None:
    match value:
        case None | "linear" | "exponential":
            return value
        case _:
            raise ManifestError("spec.delivery.backoffPolicy", f"must be linear or exponential, not {value!r}")


def _format(value: str | None) -> Format:
    match value:
        case None:
            return "binary"
        case "binary" | "json":
            return value
        case _:
            raise ManifestError("spec.delivery.format", f"must be json or binary, not {value!r}")


def _timeout(value: Mapping[str, object], path: str) -> float | None:
    seconds = _seconds(value, "timeout", path)
    if seconds == 0:
        raise ManifestError(below(path, "timeout"), "must be greater than zero")
    return seconds


def _seconds(value: Mapping[str, object], key: str, path: str) -> float | None:
    text = text_at(value, key, path)
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ManifestError(below(path, key), str(error)) from error

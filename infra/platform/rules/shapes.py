"""What an API server makes of a document: unknown fields refused, or dropped where a schema is open; and annotations of
Knative's that nobody reads because of a letter.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator

from infra.platform.durations import go_seconds
from infra.platform.rules.registry import rule
from infra.platform.schemas import Schemas
from infra.platform.stack import AUTOSCALING, SERVING, Doc, Stack, annotations_of, mapping, name_of, spec_of

_QUEUE = "queue.sidecar.serving.knative.dev/"
_TEMPLATE = {"serving.knative.dev/progress-deadline", "serving.knative.dev/no-gc"} | {
    f"{_QUEUE}{resource}-resource-{end}"
    for resource in ("cpu", "memory", "ephemeral-storage")
    for end in ("request", "limit")
}
_OBJECT = {
    *("serving.knative.dev/rollout-duration", "features.knative.dev/podspec-dryrun"),
    *("networking.knative.dev/ingress.class", "networking.knative.dev/disable-external-domain-tls"),
    *("networking.knative.dev/http-protocol", "networking.knative.dev/certificate-class"),
    *("eventing.knative.dev/broker.class", "eventing.knative.dev/injection", "knative.dev/dependency"),
    *("kafka.eventing.knative.dev/delivery.order", "kafka.eventing.knative.dev/external.topic"),
    *("rabbitmq.eventing.knative.dev/parallelism", "messaging.knative.dev/async-handler"),
}
_DOMAINS = tuple({key.rpartition("/")[0] for key in _TEMPLATE | _OBJECT} | {AUTOSCALING.rstrip("/")})
_NAMES = frozenset({"min-scale", "max-scale", "initial-scale", "target", "window", "progress-deadline"})
"""Of annotations whose domain is easily left out."""
_READ = frozenset({f"spec.delivery.{field}" for field in ("timeout", "retryAfterMax", "format")})
"""What the eventing controllers read although the schemas of Broker and Trigger do not have it."""


@rule("schema", "An API server refuses the object, in the middle of `kubectl apply`.")
def schema(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc, schemas in _known(stack):
        for fault in schemas.faults(doc):
            if fault.refused:
                yield f"{name_of(doc)}: {fault.path}", fault.says


@rule("open-field", "Knative's schema is open here: the field is taken and dropped, as if it had never been written.")
def open_field(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc, schemas in _known(stack):
        found = [fault for fault in schemas.faults(doc) if not fault.refused and fault.path not in _READ]
        if str(doc.get("apiVersion")).startswith(SERVING):
            found += schemas.faults_of_pod(doc)
        for fault in found:
            yield f"{name_of(doc)}: {fault.path}", f"{fault.says}, and Knative does not say so"


def _known(stack: Stack) -> Iterator[tuple[Doc, Schemas]]:
    if stack.schemas is not None:
        yield from ((doc, stack.schemas) for doc in stack.docs if stack.schemas.knows(doc))


@rule("annotation-key", "A key that Knative does not know is kept and has no effect.")
def annotation_key(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc in stack.docs:
        yield from _unknown(annotations_of(doc), _OBJECT, f"{name_of(doc)}: metadata.annotations")
        template = mapping(spec_of(doc).get("template")) if str(doc.get("apiVersion")).startswith(SERVING) else {}
        yield from _unknown(annotations_of(template), _TEMPLATE, f"{name_of(doc)}: spec.template.metadata.annotations")


def _unknown(annotations: Doc, known: set[str], where: str) -> Iterator[tuple[str, str]]:
    for key in annotations:
        domain, slash, name = key.rpartition("/")
        is_knatives = domain == "knative.dev" or domain.endswith(".knative.dev")
        if is_knatives and not key.startswith(AUTOSCALING) and key not in known:
            yield f"{where}[{key}]", "is no annotation that Knative reads here"
        elif not is_knatives and difflib.get_close_matches(domain, _DOMAINS, n=1, cutoff=0.85):
            yield f"{where}[{key}]", f"{domain} is no domain of Knative's"
        elif not slash and name in _NAMES:
            yield f"{where}[{key}]", "has no domain, so that nobody reads it"


@rule("annotation-value", "The webhook refuses some, and ignores the others.")
def annotation_value(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc in stack.docs:
        template = mapping(spec_of(doc).get("template")) if str(doc.get("apiVersion")).startswith(SERVING) else {}
        places = {"metadata": annotations_of(doc), "spec.template.metadata": annotations_of(template)}
        for place, written in places.items():
            for key, fits in _VALUES.items():
                if key in written and not fits(str(written[key])):
                    yield f"{name_of(doc)}: {place}.annotations[{key}]", f"cannot be {written[key]!r}"


def _whole_seconds(text: str) -> bool:
    seconds = go_seconds(text)
    return seconds >= 0 and seconds.is_integer()


def _object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


_VALUES: dict[str, Callable[[str], bool]] = {
    "serving.knative.dev/progress-deadline": _whole_seconds,
    "serving.knative.dev/rollout-duration": _whole_seconds,
    "features.knative.dev/podspec-dryrun": lambda text: text in ("enabled", "strict"),
    "eventing.knative.dev/injection": lambda text: text in ("enabled", "disabled"),
    "knative.dev/dependency": _object,
    "kafka.eventing.knative.dev/delivery.order": lambda text: text in ("ordered", "unordered"),
    "rabbitmq.eventing.knative.dev/parallelism": lambda text: text.isdigit() and int(text) > 0,
}


@rule("kind", "A group that is known, and no such kind in it: the API server refuses the object.")
def kind(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc in stack.docs:
        api = str(doc.get("apiVersion"))
        if stack.schemas is not None and not stack.schemas.knows(doc):
            groups = {known.rpartition("/")[0] for known, _ in stack.schemas.kinds}
            if api.rpartition("/")[0] in groups:
                yield f"{name_of(doc)}: kind", f"{api} has no kind {doc.get('kind')} that is known here"

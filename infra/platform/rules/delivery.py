"""How events travel: brokers, Triggers, and what becomes of what nobody could take (knative.md sections 2.2, 2.4)."""

from __future__ import annotations

from collections.abc import Iterator

from infra.local.eventing.duration import parse_duration
from infra.platform.rules.registry import rule
from infra.platform.stack import EVENTING, Doc, Stack, annotations_of, mapping, name_of, spec_of, whole

WAKE = "/wake"
"""The path where a stage is only woken: it answers 204 and publishes nothing."""
_POINTS = dict.fromkeys(("PingSource", "IntegrationSource", "SinkBinding"), ("sink",)) | {"Trigger": ("subscriber",)}
CLASSES = {
    "MTChannelBasedBroker": "ConfigMap",
    "Kafka": "ConfigMap",
    "KafkaNamespaced": "ConfigMap",
    "RabbitMQBroker": "RabbitmqBrokerConfig",
}


@rule("dead-letter-missing", "After the last retry the event is dropped: the job never ends, and nobody hears of it.")
def dead_letter_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        if not wakes(trigger) and not _sink(trigger):
            yield f"{name_of(trigger)}: spec.delivery.deadLetterSink", "is missing"


@rule("dead-letter-loop", "A dead letter's own failure comes back to it, for ever.")
def dead_letter_loop(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        if _sink(trigger) and subscriber(trigger) == _sink(trigger):
            yield f"{name_of(trigger)}: spec.subscriber", "is the Trigger's own dead letter sink"


@rule("retry-at-once", "Without policy and delay all retries are made in one moment, while the pod is still starting.")
def retry_at_once(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        delivery = _delivery(trigger)
        if delivery.get("retry", 10) and not {"backoffPolicy", "backoffDelay"} <= delivery.keys():
            yield f"{name_of(trigger)}: spec.delivery", "needs backoffPolicy and backoffDelay where it retries"


@rule("duration", "Delivery speaks ISO 8601 (PT30S); the webhook refuses 30s.")
def duration(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc in [*stack.triggers, *stack.of("Broker", EVENTING)]:
        for field in ("timeout", "backoffDelay", "retryAfterMax"):
            text = _delivery(doc).get(field)
            if text is not None and _seconds(text) is None:
                yield f"{name_of(doc)}: spec.delivery.{field}", f"{text!r} is no ISO 8601 duration"


@rule("delivery-value", "The schemas of delivery are open: the webhook refuses it, or the default holds.")
def delivery_value(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc in [*stack.triggers, *stack.of("Broker", EVENTING)]:
        delivery, where = _delivery(doc), f"{name_of(doc)}: spec.delivery"
        retry = delivery.get("retry", 0)
        if not isinstance(retry, int) or isinstance(retry, bool) or retry < 0:
            yield f"{where}.retry", f"cannot be {retry!r}"
        for field, words in (("backoffPolicy", ("linear", "exponential")), ("format", ("json", "binary"))):
            if delivery.get(field, words[0]) not in words:
                yield f"{where}.{field}", f"must be one of {', '.join(words)}, not {delivery[field]!r}"


@rule("delivery-timeout", "A broker that gives up before the Service does sends the event again while it is worked on.")
def delivery_timeout(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        service, waits = stack.service(subscriber(trigger)), _seconds(_delivery(trigger).get("timeout", "PT600S"))
        works = whole(service.pod.get("timeoutSeconds"), 300) if service else 0
        if not wakes(trigger) and waits is not None and waits <= works:
            yield f"{name_of(trigger)}: spec.delivery.timeout", f"is {waits:g} s, the Service's timeout {works} s"


@rule("target-missing", "What points to nothing is taken, and is never Ready: its events wait or are lost.")
def target_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc in stack.docs:
        for field, ref in _references(doc):
            api = str(ref.get("apiVersion")).partition("/")[0]
            if not stack.has(str(ref.get("kind")), ref.get("name"), api):
                yield f"{name_of(doc)}: {field}", f"there is no {ref.get('kind')} {ref.get('name')} of {api}"
    for doc in stack.docs:
        for field in _POINTS.get(str(doc.get("kind")), ()) if _is_of_events(doc) else ():
            target = mapping(spec_of(doc).get(field))
            if not target.get("uri") and not mapping(target.get("ref")).get("name"):
                yield f"{name_of(doc)}: spec.{field}", "names nothing"


@rule("broker-class", "An unknown class, or one in other letters, belongs to no controller: the Broker is never Ready.")
def broker_class(stack: Stack) -> Iterator[tuple[str, str]]:
    for broker in stack.of("Broker", EVENTING):
        name = annotations_of(broker).get("eventing.knative.dev/broker.class")
        kind = mapping(spec_of(broker).get("config")).get("kind")
        where = f"{name_of(broker)}: metadata.annotations[eventing.knative.dev/broker.class]"
        if name is not None and name not in CLASSES:
            yield where, f"{name!r} is none of {', '.join(CLASSES)}"
        elif name is not None and kind != CLASSES[name]:
            yield f"{name_of(broker)}: spec.config", f"must be a {CLASSES[name]} for class {name}, not {kind}"


def _delivery(doc: Doc) -> Doc:
    return mapping(spec_of(doc).get("delivery"))


def _sink(doc: Doc) -> object:
    sink = mapping(_delivery(doc).get("deadLetterSink"))
    return mapping(sink.get("ref")).get("name") or sink.get("uri")


def subscriber(trigger: Doc) -> object:
    return mapping(mapping(spec_of(trigger).get("subscriber")).get("ref")).get("name")


def wakes(trigger: Doc) -> bool:
    return mapping(spec_of(trigger).get("subscriber")).get("uri") == WAKE


def _seconds(text: object) -> float | None:
    try:
        return parse_duration(str(text))
    except ValueError:
        return None


def _is_of_events(doc: Doc) -> bool:
    return str(doc.get("apiVersion")).startswith((EVENTING, "sources.knative.dev/"))


def _references(doc: Doc) -> Iterator[tuple[str, Doc]]:
    """Every object that a document of eventing points to by name."""
    spec = spec_of(doc)
    if not _is_of_events(doc):
        return
    places = {
        "spec.subscriber": spec.get("subscriber"),
        "spec.sink": spec.get("sink"),
        "spec.delivery.deadLetterSink": _delivery(doc).get("deadLetterSink"),
    }
    pointed = {field: mapping(mapping(place).get("ref")) for field, place in places.items()}
    pointed |= {f"spec.{field}": mapping(spec.get(field)) for field in ("subject", "config")}
    yield from ((field, ref) for field, ref in pointed.items() if ref.get("name"))
    if doc.get("kind") == "Trigger" and spec.get("broker"):
        yield "spec.broker", {"apiVersion": EVENTING, "kind": "Broker", "name": spec["broker"]}

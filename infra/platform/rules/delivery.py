"""How events travel: brokers, Triggers, and what happens to what nobody could take (knative.md sections 2.1 to 2.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from infra.local.eventing.duration import parse_duration
from infra.local.eventing.filters import parse_filter
from infra.local.fields import ManifestError
from infra.platform.rules.registry import rule
from infra.platform.stack import EVENTING, Doc, Stack, annotations_of, listing, mapping, name_of, spec_of

WAKE = "/wake"
"""The path where a stage is only woken: it answers 204 and publishes nothing."""
SILENT = frozenset({"notify", "meter"})
"""Stages whose answers carry no event."""
CLASSES = {
    "MTChannelBasedBroker": "ConfigMap",
    "Kafka": "ConfigMap",
    "KafkaNamespaced": "ConfigMap",
    "RabbitMQBroker": "RabbitmqBrokerConfig",
}
_NAME = re.compile(r"[a-z][a-z0-9]*")
_DIALECTS = ("exact", "prefix", "suffix", "all", "any", "not", "cesql")


@rule("dead-letter-missing", "After the last retry the event is dropped: the job never ends, and nobody hears of it.")
def dead_letter_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        if not _wakes(trigger) and not _sink(trigger):
            yield f"{name_of(trigger)}: spec.delivery.deadLetterSink", "is missing"


@rule("dead-letter-loop", "A dead letter's own failure comes back to it, for ever.")
def dead_letter_loop(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        if _sink(trigger) and _subscriber(trigger) == _sink(trigger):
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


@rule("delivery-timeout", "A broker that gives up before the Service does sends the event again while it is worked on.")
def delivery_timeout(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        service, waits = stack.service(_subscriber(trigger)), _seconds(_delivery(trigger).get("timeout", "PT600S"))
        works = service.pod.get("timeoutSeconds") or 300 if service else 0
        if not _wakes(trigger) and waits is not None and waits <= works:
            yield f"{name_of(trigger)}: spec.delivery.timeout", f"is {waits:g} s, the Service's timeout {works} s"


@rule("filter-missing", "A Trigger without a filter hears every event, its own Service's answers too.")
def filter_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        if not spec_of(trigger).get("filters") and not mapping(spec_of(trigger).get("filter")).get("attributes"):
            yield f"{name_of(trigger)}: spec.filters", "is missing"


@rule("filter-ignored", "Where there are filters, filter is ignored without a word.")
def filter_ignored(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        if spec_of(trigger).get("filters") and spec_of(trigger).get("filter"):
            yield f"{name_of(trigger)}: spec.filter", "is ignored beside spec.filters"


@rule("filter-name", "No event has an attribute of this name: CloudEvents knows small letters and digits only.")
def filter_name(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        older = mapping(mapping(spec_of(trigger).get("filter")).get("attributes"))
        for name in [*older, *_names(listing(spec_of(trigger).get("filters")))]:
            if not _NAME.fullmatch(name):
                yield f"{name_of(trigger)}: spec.filters", f"{name!r} is no name of an attribute"


@rule("filter-mixed", "One entry has one dialect; the webhook refuses a mix, which would look like `and`.")
def filter_mixed(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        for where, entry in _entries(listing(spec_of(trigger).get("filters")), "spec.filters"):
            if len(entry) != 1 or not set(entry) <= set(_DIALECTS):
                yield f"{name_of(trigger)}: {where}", f"must have one of {', '.join(_DIALECTS)}"


@rule("target-missing", "What points to nothing is taken, and is never Ready: its events wait or are lost.")
def target_missing(stack: Stack) -> Iterator[tuple[str, str]]:
    for doc in stack.docs:
        for field, ref in _references(doc):
            api = str(ref.get("apiVersion")).partition("/")[0]
            if not stack.has(str(ref.get("kind")), ref.get("name"), api):
                yield f"{name_of(doc)}: {field}", f"there is no {ref.get('kind')} {ref.get('name')} of {api}"


@rule("reply-loop", "A stage that hears what it answers with works on its own answers, 255 times over.")
def reply_loop(stack: Stack) -> Iterator[tuple[str, str]]:
    for trigger in stack.triggers:
        stage = _stage(trigger)
        if stage in SILENT or _wakes(trigger):
            continue
        for outcome in ("completed", "rejected", "failed"):
            said = {"type": f"dev.wakeswap.{stage}.{outcome}.v1", "source": f"/wakeswap/{stage}"}
            if _hears(trigger, said):
                yield f"{name_of(trigger)}: spec.filters", f"let {said['type']} through, which {stage} itself says"


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


def _subscriber(trigger: Doc) -> object:
    return mapping(mapping(spec_of(trigger).get("subscriber")).get("ref")).get("name")


def _wakes(trigger: Doc) -> bool:
    return mapping(spec_of(trigger).get("subscriber")).get("uri") == WAKE


def _stage(trigger: Doc) -> str:
    """Of a process of several stages the path names the one that is meant."""
    uri = str(mapping(spec_of(trigger).get("subscriber")).get("uri") or "")
    return (uri.strip("/") or str(_subscriber(trigger)).removesuffix("-batch")).replace("-", "_")


def _seconds(text: object) -> float | None:
    try:
        return parse_duration(str(text))
    except ValueError:
        return None


def _hears(trigger: Doc, attributes: Mapping[str, str]) -> bool:
    """False for a filter that cannot be read: another rule says so."""
    try:
        return parse_filter(spec_of(trigger), "spec").matches(attributes)
    except ManifestError:
        return False


def _entries(entries: list[Any], path: str) -> Iterator[tuple[str, Doc]]:
    """Every filter with its place, those inside others too."""
    for index, entry in enumerate(entries):
        where = f"{path}[{index}]"
        yield where, mapping(entry)
        for dialect, value in mapping(entry).items():
            if dialect in ("any", "all", "not"):
                yield from _entries(value if isinstance(value, list) else [value], f"{where}.{dialect}")


def _names(entries: list[Any]) -> Iterator[str]:
    for _, entry in _entries(entries, ""):
        for dialect, value in entry.items():
            if dialect in ("exact", "prefix", "suffix"):
                yield from map(str, mapping(value))


def _references(doc: Doc) -> Iterator[tuple[str, Doc]]:
    """Every object that a document of eventing points to by name."""
    spec = spec_of(doc)
    if not str(doc.get("apiVersion")).startswith((EVENTING, "sources.knative.dev/")):
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

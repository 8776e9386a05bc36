"""Broker and Trigger documents: what is read, and what is refused under which name."""

import copy

import pytest

from infra.local.eventing.spec import Delivery, Destination, Reference, parse_broker, parse_trigger
from infra.local.fields import ManifestError

SERVICE = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "swap"}
BROKER: dict[str, object] = {
    "apiVersion": "eventing.knative.dev/v1",
    "kind": "Broker",
    "metadata": {"name": "default", "namespace": "wakeswap"},
    "spec": {
        "delivery": {
            "retry": 4,
            "backoffPolicy": "linear",
            "backoffDelay": "PT0.5S",
            "timeout": "PT5M",
            "deadLetterSink": {"ref": {**SERVICE, "name": "dead-letter"}},
        }
    },
}
TRIGGER: dict[str, object] = {
    "apiVersion": "eventing.knative.dev/v1",
    "kind": "Trigger",
    "metadata": {"name": "swap", "labels": {"app": "wakeswap"}, "annotations": {"local.wakeswap.dev/x": "1"}},
    "spec": {"broker": "default", "subscriber": {"ref": SERVICE, "uri": "/wake"}},
}


def test_broker() -> None:
    broker = parse_broker(BROKER)
    assert broker.key == "wakeswap/default"
    assert broker.delivery == Delivery(
        retry=4,
        backoff_policy="linear",
        backoff_delay=0.5,
        timeout=300.0,
        dead_letter_sink=Destination(Reference("serving.knative.dev/v1", "Service", "dead-letter", "wakeswap"), None),
    )


def test_broker_without_delivery_leaves_it_to_the_defaults() -> None:
    assert parse_broker(changed(BROKER, "spec", {})).delivery is None
    assert parse_broker(changed(BROKER, "spec.delivery", {})).delivery == Delivery()


def test_trigger() -> None:
    trigger = parse_trigger(TRIGGER)
    assert (trigger.key, trigger.broker_key) == ("default/swap", "default/default")
    assert trigger.subscriber.ref == Reference("serving.knative.dev/v1", "Service", "swap", "default")
    assert trigger.subscriber.url("http://127.0.0.1:9") == "http://127.0.0.1:9/wake"
    assert str(trigger.subscriber) == "Service/default/swap/wake"
    assert trigger.delivery is None
    assert trigger.filter.matches({})


def test_trigger_format_and_plain_uri() -> None:
    trigger = parse_trigger(
        changed(changed(TRIGGER, "spec.delivery", {"format": "json"}), "spec.subscriber", {"uri": "http://a.test/x"})
    )
    assert trigger.delivery == Delivery(format="json")
    assert trigger.subscriber.url() == "http://a.test/x"


@pytest.mark.parametrize(
    ("path", "value", "field", "reason"),
    [
        ("spec.config", {"name": "kafka"}, "spec.config", "not implemented by the local platform"),
        ("spec.delivery.retryAfterMax", "PT1S", "spec.delivery.retryAfterMax", "delivery-retryafter"),
        ("spec.delivery.format", "json", "spec.delivery.format", "only a Trigger"),
        ("spec.delivery.backofDelay", "PT1S", "spec.delivery.backofDelay", "not implemented"),
        ("spec.delivery.retry", -1, "spec.delivery.retry", "at least 0"),
        ("spec.delivery.retry", "3", "spec.delivery.retry", "whole number"),
        ("spec.delivery.backoffPolicy", "Linear", "spec.delivery.backoffPolicy", "linear or exponential"),
        ("spec.delivery.backoffDelay", "0.2s", "spec.delivery.backoffDelay", "ISO-8601"),
        ("spec.delivery.timeout", "PT0S", "spec.delivery.timeout", "greater than zero"),
        ("spec.delivery.timeout", "300", "spec.delivery.timeout", "ISO-8601"),
        ("spec.delivery.deadLetterSink", {}, "spec.delivery.deadLetterSink", "a ref or a uri"),
        ("spec.delivery.deadLetterSink.CACerts", "x", "spec.delivery.deadLetterSink.CACerts", "not implemented"),
        ("metadata.annotations", {"kafka.eventing.knative.dev/external.topic": "t"}, None, "not implemented"),
        ("metadata.finalizers", [], "metadata.finalizers", "not implemented"),
        ("metadata.name", "", "metadata.name", "required"),
        ("status", {}, "status", "not implemented"),
        ("apiVersion", "eventing.knative.dev/v1beta1", "apiVersion, kind", "must be"),
        ("kind", "Trigger", "apiVersion, kind", "must be"),
    ],
)
def test_broker_refusals(path: str, value: object, field: str | None, reason: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_broker(changed(BROKER, path, value))
    assert caught.value.field == (field or "metadata.annotations[kafka.eventing.knative.dev/external.topic]")
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("path", "value", "field", "reason"),
    [
        ("spec.brokerRef", {"name": "x"}, "spec.brokerRef", "cross-namespace-event-links"),
        ("spec.broker", None, "spec.broker", "required"),
        ("spec.subscriber", None, "spec.subscriber", "a ref or a uri"),
        ("spec.subscriber.audience", "x", "spec.subscriber.audience", "not implemented"),
        ("spec.subscriber.uri", "wake", "spec.subscriber.uri", "absolute path"),
        ("spec.subscriber", {"uri": "/wake"}, "spec.subscriber.uri", "http or https"),
        ("spec.subscriber.ref.group", "serving.knative.dev", "spec.subscriber.ref.group", "not implemented"),
        ("spec.subscriber.ref", {"kind": "Service", "name": "x"}, "spec.subscriber.ref.apiVersion", "required"),
        ("spec.delivery", {"format": "xml"}, "spec.delivery.format", "json or binary"),
        ("spec.filters", [{"cesql": "true"}], "spec.filters[0].cesql", "not implemented"),
        (
            "metadata.annotations",
            {"knative.dev/dependency": "{}"},
            "metadata.annotations[knative.dev/dependency]",
            "not",
        ),
    ],
)
def test_trigger_refusals(path: str, value: object, field: str, reason: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_trigger(changed(TRIGGER, path, value))
    assert caught.value.field == field
    assert reason in caught.value.reason


def changed(doc: dict[str, object], path: str, value: object) -> dict[str, object]:
    """A deep copy of the document with one value replaced or added."""
    result = copy.deepcopy(doc)
    *parents, last = path.split(".")
    where = result
    for name in parents:
        where = where[name]  # type: ignore[assignment]
    where[last] = value
    return result

"""Brokers and Triggers put together: fan-out, hop counts, mistakes."""

import pytest

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.filters import All, Text
from infra.local.eventing.spec import Broker, Destination, Trigger
from infra.local.eventing.topology import Topology
from infra.local.fields import ManifestError

TARGET = Destination(None, "http://a.test/")
BROKERS = [Broker("ns", "default", None), Broker("other", "default", None)]


def trigger(name: str, namespace: str = "ns", wanted: str = "t", broker: str = "default") -> Trigger:
    return Trigger(namespace, name, broker, All((Text("exact", (("type", wanted),)),)), TARGET, None)


def event(**extra: str) -> CloudEvent:
    return CloudEvent({"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **extra})


def test_an_event_goes_to_every_matching_trigger_of_its_broker() -> None:
    topology = Topology(BROKERS, [trigger("a"), trigger("b"), trigger("c", wanted="u"), trigger("d", "other")])
    publication = topology.publication("ns/default", event())
    assert publication is not None
    assert list(publication.triggers) == ["ns/a", "ns/b"]


def test_the_hop_count_is_the_brokers_own_and_ends_loops() -> None:
    topology = Topology(BROKERS, [trigger("a")])
    publication, hops = topology.publication("ns/default", event()), 0
    assert publication is not None
    assert publication.ttl == 255
    while publication is not None:
        assert "knativebrokerttl" not in publication.event.attributes
        # a subscriber that sets the attribute itself does not get more hops
        publication = topology.reply(publication, event(id=str(hops), knativebrokerttl="255"))
        hops += 1
    assert hops == 255
    assert topology.publication("ns/default", event(knativebrokerttl="1")) is None


@pytest.mark.parametrize(
    ("brokers", "triggers", "field"),
    [
        ([BROKERS[0], BROKERS[0]], [], "metadata.name"),
        (BROKERS, [trigger("a"), trigger("a")], "metadata.name"),
        (BROKERS, [trigger("a", broker="missing")], "spec.broker"),
        (BROKERS, [trigger("a", namespace="nowhere")], "spec.broker"),
    ],
)
def test_mistakes(brokers: list[Broker], triggers: list[Trigger], field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        Topology(brokers, triggers)
    assert caught.value.field == field

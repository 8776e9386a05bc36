"""Who gets what: Brokers and Triggers put together and checked against each other. Pure; knows no I/O."""

from collections.abc import Iterable

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.delivery import TTL_ATTRIBUTE, effective, time_to_live
from infra.local.eventing.records import Publication
from infra.local.eventing.spec import Broker, Delivery, Trigger
from infra.local.fields import ManifestError


class Topology:
    """Brokers and Triggers by their keys (`namespace/name`)."""

    def __init__(self, brokers: Iterable[Broker], triggers: Iterable[Trigger]) -> None:
        """ManifestError for a name used twice and for a Trigger whose Broker does not exist."""
        self.brokers: dict[str, Broker] = {}
        self.triggers: dict[str, Trigger] = {}
        for broker in brokers:
            if broker.key in self.brokers:
                raise ManifestError("metadata.name", f"a second Broker {broker.key}")
            self.brokers[broker.key] = broker
        for trigger in triggers:
            if trigger.key in self.triggers:
                raise ManifestError("metadata.name", f"a second Trigger {trigger.key}")
            if trigger.broker_key not in self.brokers:
                raise ManifestError("spec.broker", f"Trigger {trigger.key}: there is no Broker {trigger.broker_key}")
            self.triggers[trigger.key] = trigger
        self._deliveries = {
            key: effective(self.brokers[trigger.broker_key], trigger) for key, trigger in self.triggers.items()
        }

    def delivery(self, trigger: str) -> Delivery:
        """The delivery in force for the Trigger with this key."""
        return self._deliveries[trigger]

    def publication(self, broker: str, event: CloudEvent) -> Publication | None:
        """The event as the broker with this key stores it; None where its hops are used up.

        The hop count is the broker's own: it is taken off the event, so no subscriber and no filter sees it.
        """
        ttl = time_to_live(event.attributes)
        if ttl <= 0:
            return None
        plain = event.without(TTL_ATTRIBUTE)
        wanting = [
            key
            for key, trigger in self.triggers.items()
            if trigger.broker_key == broker and trigger.filter.matches(plain.attributes)
        ]
        return Publication(broker, plain, ttl, wanting)

    def reply(self, cause: Publication, event: CloudEvent) -> Publication | None:
        """A subscriber's reply to `cause`, for the same broker with one hop less, whatever it says itself."""
        return self.publication(cause.broker, event.extended({TTL_ATTRIBUTE: str(cause.ttl)}))

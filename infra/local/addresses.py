"""Where things listen: the address of every Service and Broker, and so of every destination."""

from __future__ import annotations

from collections.abc import Iterable

from infra.local.eventing.spec import Destination
from infra.local.sources.spec import SinkBinding


class Addresses:
    """Filled while the platform starts, read by all who send."""

    def __init__(self, bindings: Iterable[SinkBinding], platform: str) -> None:
        self.platform = platform
        self.services: dict[str, str] = {}
        self._bindings = {binding.subject: binding.sink for binding in bindings}

    def resolve(self, destination: Destination) -> str | None:
        """The whole URL, None while the object has no address."""
        ref = destination.ref
        if ref is None:
            return destination.url()
        if ref.kind == "Broker":
            return destination.url(f"{self.platform}/{ref.namespace}/{ref.name}")
        base = self.services.get(ref.name)
        return None if base is None else destination.url(base)

    def sink_of(self, service: str) -> str | None:
        """K_SINK of a Service: what its SinkBinding points to."""
        sink = self._bindings.get(service)
        return None if sink is None else self.resolve(sink)

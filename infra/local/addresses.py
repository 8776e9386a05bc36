"""Where things listen: the address of every Service, Broker and JobSink, and so of every destination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infra.local.eventing.spec import Destination
from infra.local.sources.spec import SinkBinding


class Addresses:
    """Filled while the platform starts, read by all who send."""

    def __init__(self, bindings: Sequence[SinkBinding], platform: str) -> None:
        self.platform = platform
        self.services: dict[str, str] = {}
        self._of_jobs = [binding for binding in bindings if binding.labels]
        self._bindings = {binding.subject: binding.sink for binding in bindings if not binding.labels}

    def resolve(self, destination: Destination) -> str | None:
        """The whole URL, None while the object has no address."""
        ref = destination.ref
        if ref is None:
            return destination.url()
        if ref.kind == "Broker":
            return destination.url(f"{self.platform}/{ref.namespace}/{ref.name}")
        if ref.kind == "JobSink":
            return destination.url(f"{self.platform}/jobsinks/{ref.namespace}/{ref.name}")
        base = self.services.get(ref.name)
        return None if base is None else destination.url(base)

    def sink_of(self, service: str) -> str | None:
        """K_SINK of a Service: what its SinkBinding points to."""
        sink = self._bindings.get(service)
        return None if sink is None else self.resolve(sink)

    def sink_of_jobs(self, labels: Mapping[str, str]) -> str | None:
        """K_SINK of Jobs with these labels."""
        found = next((binding for binding in self._of_jobs if binding.takes(labels)), None)
        return None if found is None else self.resolve(found.sink)

"""How far a dedicated tenant's stages may grow: its GPUs shared out among them, and a quota in which all have room.
Pure; changes the objects of a plan in place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from infra.platform.quantities import amount
from infra.tenants.objects import Object, at, containers, inside, kind_of, name_of, rows, services, text
from shared.errors import ConfigError, JsonValue
from shared.tenancy.tenant import Dedicated

GPU = "nvidia.com/gpu"
MAX_SCALE = "autoscaling.knative.dev/max-scale"
QUEUE_PROXY_CPU = 0.025
"""What Knative's own container in each pod asks for."""
_GIB = 2**30


@dataclass(frozen=True)
class Need:
    """Of one pod, or of many: CPUs, bytes asked for, bytes at most."""

    cpus: float = 0.0
    memory: float = 0.0
    limit: float = 0.0

    def __add__(self, other: Need) -> Need:
        return Need(self.cpus + other.cpus, self.memory + other.memory, self.limit + other.limit)

    def __or__(self, other: Need) -> Need:
        """Of the larger: init containers run before the others."""
        return Need(max(self.cpus, other.cpus), max(self.memory, other.memory), max(self.limit, other.limit))

    def times(self, count: int) -> Need:
        return Need(self.cpus * count, self.memory * count, self.limit * count)


def quantity(value: JsonValue) -> float:
    """Of a resource, in its base unit (cores, bytes). Raises ConfigError for what Kubernetes writes otherwise."""
    found = amount(value)
    if math.isnan(found):
        raise ConfigError(f"{value!r} is no quantity that is read here.", context={"field": "--overlay"})
    return found


def share_gpus(objects: Sequence[Object], dedicated: Dedicated) -> None:
    """Each Service that needs a GPU gets one at most, and what is then left goes to the one that swaps faces.

    With fewer GPUs than such Services they take turns: the quota holds the second back until the first is asleep.
    Raises ConfigError when there is none at all.
    """
    wanting = [service for service in services(objects) if _gpus(service)]
    if not wanting:
        return
    if dedicated.gpus == 0:
        names = ", ".join(sorted(name_of(service) for service in wanting))
        raise ConfigError(f"Must be at least 1: {names} need a GPU.", context={"field": "dedicated.gpus"})
    first = next((service for service in wanting if name_of(service) in ("swap", "fused")), wanting[0])
    for service in wanting:
        share = max(1, dedicated.gpus - len(wanting) + 1) if service is first else 1
        inside(service, "spec", "template", "metadata", "annotations")[MAX_SCALE] = str(share)


def quota(objects: Sequence[Object], dedicated: Dedicated) -> None:
    """What the tenant's pods may ask for. Raises ConfigError when a number of the tenant's has no room for one pod."""
    limits = next((item for item in objects if kind_of(item) == "LimitRange"), {})
    proxy = _proxy(limits)
    each = {name_of(service): (_pod(service) + proxy, _most(service)) for service in services(objects)}
    together, largest, pods = Need(), Need(), 0
    for need, most in each.values():
        together, largest, pods = together + need.times(most), largest | need, pods + most
    _check(dedicated, largest)
    for item in objects:
        if kind_of(item) == "ResourceQuota":
            _write(inside(item, "spec", "hard"), dedicated, together, pods)


def _check(dedicated: Dedicated, largest: Need) -> None:
    if 0 < dedicated.cpus < largest.cpus:
        least = math.ceil(largest.cpus)
        raise ConfigError(f"Must be 0 or at least {least}: one pod asks for it.", context={"field": "dedicated.cpus"})
    if 0 < dedicated.memory_gib * _GIB < largest.memory:
        least = math.ceil(largest.memory / _GIB)
        raise ConfigError(
            f"Must be 0 or at least {least}: one pod asks for it.", context={"field": "dedicated.memory_gib"}
        )


def _write(hard: Object, dedicated: Dedicated, together: Need, pods: int) -> None:
    """What the component says stays where it is more than the stages ask for: Jobs and brokers may need it."""
    cpus = dedicated.cpus or max(math.ceil(together.cpus), math.ceil(quantity(hard.get("requests.cpu", 0))))
    asked = quantity(hard.get("requests.memory", 0)) / _GIB
    memory = dedicated.memory_gib or max(math.ceil(together.memory / _GIB), math.ceil(asked))
    allowed = quantity(hard.get("limits.memory", 0)) / _GIB
    limit = max(2 * memory, math.ceil(together.limit / _GIB), math.ceil(allowed))
    hard["requests.cpu"], hard["requests.memory"], hard["limits.memory"] = str(cpus), f"{memory}Gi", f"{limit}Gi"
    hard["pods"] = str(max(pods, math.ceil(quantity(hard.get("pods", 0)))))


def _gpus(service: Object) -> bool:
    return any(GPU in at(container, "resources", "limits") for container in containers(service))


def _most(service: Object) -> int:
    """Its largest scale. Raises ConfigError for a Service without one: no quota could hold it."""
    annotations = at(service, "spec", "template", "metadata", "annotations")
    most = text(annotations.get(MAX_SCALE))
    if not most.isdigit() or int(most) < 1:
        raise ConfigError(f"Service {name_of(service)} has no {MAX_SCALE}.", context={"field": "--overlay"})
    return int(most)


def _pod(service: Object) -> Need:
    starting, running = Need(), Need()
    for container in rows(at(service, "spec", "template", "spec").get("initContainers")):
        starting |= _container(container)
    for container in containers(service):
        running += _container(container)
    return starting | running


def _container(container: Object) -> Need:
    requests, limits = at(container, "resources", "requests"), at(container, "resources", "limits")
    limit = quantity(limits.get("memory", 0))
    return Need(quantity(requests.get("cpu", 0)), quantity(requests.get("memory", limit)), limit)


def _proxy(limits: Object) -> Need:
    """Knative's own container, for which the LimitRange speaks."""
    ranges = [row for row in rows(at(limits, "spec").get("limits")) if row.get("type") == "Container"]
    asked, most = (at(ranges[0], "defaultRequest"), at(ranges[0], "default")) if ranges else ({}, {})
    return Need(QUEUE_PROXY_CPU, quantity(asked.get("memory", 0)), quantity(most.get("memory", 0)))

"""What the harness counts about events and jobs, by stage and by class of tenant: never by tenant, whose number has no
bound. Names and meanings of all metrics stand in `shared.telemetry.declared`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime

from shared.context import Metrics
from shared.events.event import Event
from shared.telemetry import spans
from shared.tenancy.tenant import Tenant

NO_CLASS = "none"
"""In place of a tenant's class, for what belongs to no tenant that is known."""


def class_of(tenant: Tenant | None) -> str:
    """`shared` or `dedicated`: whose functions it uses."""
    return NO_CLASS if tenant is None else tenant.policy.isolation


@contextmanager
def work(metrics: Metrics, stage: str, event: Event, tenant: Tenant | None = None) -> Iterator[None]:
    """Around the work on an event that was taken: how old it was by then, and, if it was done, how long it took."""
    batch = event.extensions.get("priority") == "batch"
    labels = {"stage": stage, "tenant_class": class_of(tenant), "priority": "batch" if batch else "interactive"}
    waited, begun = age(event, time.time()), time.monotonic()
    if waited is not None:
        metrics.observe("queue_age", waited, **labels)
    yield
    metrics.observe("work", time.monotonic() - begun, **labels)


def age(event: Event, now: float) -> float | None:
    """Seconds since the event's own time, 0 where clocks disagree; None when it has none that can be read."""
    with suppress(ValueError):
        return max(0.0, now - datetime.fromisoformat(event.time).timestamp())
    return None


def device(metrics: Metrics, stage: str, seconds: Mapping[str, float], tenant: Tenant | None) -> None:
    """Seconds that models ran, by provider; also for work that failed, which is not billed."""
    for provider, value in seconds.items():
        metrics.count("device_seconds", value, stage=stage, provider=provider, tenant_class=class_of(tenant))
    if span := spans.opened():
        span.note(**{f"wakeswap__device_seconds__{provider}": value for provider, value in seconds.items()})


def rejected(metrics: Metrics, stage: str, code: str, tenant: Tenant | None) -> None:
    metrics.count("rejections", stage=stage, code=code, tenant_class=class_of(tenant))


def over_quota(metrics: Metrics, limit: object, tenant: Tenant) -> None:
    metrics.count("quota_refusals", limit=str(limit), tenant_class=class_of(tenant))

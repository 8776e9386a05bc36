"""All rules, entered: what whoever runs them imports. Knows where the rules are."""

from __future__ import annotations

from infra.platform.rules import (
    autoscaling,
    cluster,
    delivery,
    filters,
    pods,
    priority,
    probes,
    resources,
    shapes,
    sources,
    stages,
)
from infra.platform.rules.registry import RULES, Finding, findings

MODULES = (shapes, autoscaling, pods, resources, probes, delivery, filters, priority, sources, stages, cluster)

__all__ = ["MODULES", "RULES", "Finding", "findings"]

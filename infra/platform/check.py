"""All rules, entered: what whoever runs them imports. Knows where the rules are."""

from __future__ import annotations

from infra.platform.rules import autoscaling, cluster, delivery, pods, priority, probes, shapes, sources, stages
from infra.platform.rules.registry import RULES, Finding, findings

MODULES = (shapes, autoscaling, pods, probes, delivery, priority, sources, stages, cluster)

__all__ = ["MODULES", "RULES", "Finding", "findings"]

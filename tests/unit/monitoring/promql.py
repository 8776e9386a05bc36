"""What a query asks for, read by a parser of PromQL's own grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import promql_parser
import yaml

from shared.telemetry.declared import METRICS, Metric

ROOT = Path(__file__).parents[3]
COMPONENT = ROOT / "knative/components/monitoring"
EXTERNAL = {
    "kafka_consumergroup_lag": "kafka_exporter",
    "process_start_time_seconds": "prometheus-client",
    "process_resident_memory_bytes": "prometheus-client",
}
"""Metrics of others that queries use, and whose they are."""
SERIES: dict[str, Metric] = {name: metric for metric in METRICS.values() for name in metric.series}


@dataclass(frozen=True)
class Selector:
    name: str
    labels: tuple[str, ...]


def selectors(expression: str) -> set[Selector]:
    """Raises ValueError for what is no PromQL."""
    found = set()
    for node in _walk(promql_parser.parse(expression)):
        if isinstance(node, promql_parser.VectorSelector):
            assert node.name, f"a selector without a name: {expression}"
            found.add(Selector(str(node.name), tuple(matcher.name for matcher in node.matchers.matchers)))
    return found


def grouped(expression: str) -> set[str]:
    """Labels by which the query groups or joins."""
    return set(re.findall(r"\w+", " ".join(re.findall(r"(?:by|on) \(([^()]*)\)", expression))))


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for name in ("expr", "lhs", "rhs", "args", "vector_selector", "param"):
        below = getattr(node, name, None)
        for child in below if isinstance(below, list) else [below]:
            if child is not None:
                yield from _walk(child)


@cache
def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((COMPONENT / "rules.yaml").read_text())
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


@cache
def panels() -> list[dict[str, Any]]:
    files = sorted((COMPONENT / "dashboards").glob("*.json"))
    return [panel for file in files for panel in json.loads(file.read_text())["panels"]]


def shown() -> list[str]:
    """Every PromQL query of the dashboards, as Prometheus gets it."""
    targets = [target for panel in panels() for target in panel["targets"]]
    asked = [target["expr"] for target in targets if target["datasource"]["type"] == "prometheus"]
    return [expression.replace("$namespace", ".*") for expression in asked]


def queries() -> list[str]:
    return [*(rule["expr"] for rule in rules()), *shown()]


def used() -> set[str]:
    """The declared metrics that any dashboard or rule looks at, by their names in the code."""
    names = {selector.name for query in queries() for selector in selectors(query)}
    return {SERIES[name].name for name in names if name in SERIES}

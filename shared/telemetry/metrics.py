"""Counters, gauges and histograms of one process, in Prometheus' text format. The only importer of prometheus_client.

One gunicorn worker a pod, so no multiprocess files; a sleeping function has nothing to scrape, and what it did is
in the jobs' own records. Which metrics there are stands in `declared`.
"""

from __future__ import annotations

import threading
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from shared.telemetry.declared import METRICS, NAMESPACE, Kind, Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

M = TypeVar("M", Counter, Gauge, Histogram)
Collector = Counter | Gauge | Histogram


class PrometheusMetrics:
    """Implements shared.context.Metrics; a metric is shown from its first use on."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._made: dict[str, Collector] = {}
        ProcessCollector(registry=self.registry)

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to the counter. Raises ValueError for a metric that is not declared so, with these labels."""
        _labelled(self._collector(name, "counter", Counter), labels).inc(amount)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set the gauge. Raises ValueError as `count` does."""
        _labelled(self._collector(name, "gauge", Gauge), labels).set(value)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to the histogram. Raises ValueError as `count` does."""
        _labelled(self._collector(name, "duration", Histogram), labels).observe(seconds)

    def render(self) -> bytes:
        """The body of /metrics; its content type is CONTENT_TYPE."""
        return generate_latest(self.registry)

    def _collector(self, name: str, kind: Kind, made: type[M]) -> M:
        metric = METRICS.get(name)
        if metric is None or metric.kind != kind:
            raise ValueError(f"{name!r} is not declared as a {kind} in shared.telemetry.declared")
        with self._lock:
            if name not in self._made:
                self._made[name] = _make(metric, self.registry)
            found = self._made[name]
        assert isinstance(found, made)
        return found


def _make(metric: Metric, registry: CollectorRegistry) -> Collector:
    named = f"{NAMESPACE}_{metric.name}"
    match metric.kind:
        case "counter":
            return Counter(named, metric.help, metric.labels, registry=registry)
        case "gauge":
            return Gauge(named, metric.help, metric.labels, registry=registry)
        case "duration":
            return Histogram(f"{named}_seconds", metric.help, metric.labels, registry=registry, buckets=metric.buckets)


def _labelled(metric: M, labels: dict[str, str]) -> M:
    """Raises ValueError where the labels are not the declared ones."""
    return metric.labels(**labels) if labels or metric._labelnames else metric

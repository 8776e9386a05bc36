"""Counters, gauges and histograms of one process, in Prometheus' text format. The only importer of prometheus_client.

One gunicorn worker a pod, so no multiprocess files; a sleeping function has nothing to scrape, and what it did is
in the jobs' own records.
"""

from __future__ import annotations

import re
import threading
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds in seconds: from a warm light stage to the longest delivery."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")

M = TypeVar("M", Counter, Gauge, Histogram)


class PrometheusMetrics:
    """Implements shared.context.Metrics; a metric exists from its first use on."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._lock = threading.Lock()
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._gauges: dict[str, Gauge] = {}
        ProcessCollector(registry=self.registry)

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to `wakeswap_<name>_total`. One name always has the same labels. Raises ValueError."""
        with self._lock:
            if name not in self._counters:
                self._counters[name] = Counter(
                    f"wakeswap_{_check(name)}", _words(name), sorted(labels), registry=self.registry
                )
        _labelled(self._counters[name], labels).inc(amount)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Set `wakeswap_<name>`. Raises ValueError as `count` does."""
        with self._lock:
            if name not in self._gauges:
                self._gauges[name] = Gauge(
                    f"wakeswap_{_check(name)}", _words(name), sorted(labels), registry=self.registry
                )
        _labelled(self._gauges[name], labels).set(value)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Add a duration to the histogram `wakeswap_<name>_seconds`. Raises ValueError as `count` does."""
        with self._lock:
            if name not in self._histograms:
                self._histograms[name] = Histogram(
                    f"wakeswap_{_check(name)}_seconds",
                    _words(name),
                    sorted(labels),
                    registry=self.registry,
                    buckets=BUCKETS,
                )
        _labelled(self._histograms[name], labels).observe(seconds)

    def render(self) -> bytes:
        """The body of /metrics; its content type is CONTENT_TYPE."""
        return generate_latest(self.registry)


def _labelled(metric: M, labels: dict[str, str]) -> M:
    return metric.labels(**labels) if labels else metric


def _check(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a metric")
    return name


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize() + "."

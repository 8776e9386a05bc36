"""Counters, gauges and histograms as Prometheus reads them, and the list of all there are."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from shared.context import Metrics
from shared.telemetry.declared import METRICS
from shared.telemetry.metrics import PrometheusMetrics

ROOT = Path(__file__).parents[3]
DONE = {"stage": "detect", "code": "done"}
CLASS = {"stage": "detect", "tenant_class": "shared", "priority": "batch"}


def samples(metrics: PrometheusMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {(it.name, tuple(sorted(it.labels.items()))): it.value for family in families for it in family.samples}


def test_counts_gauges_and_durations_are_rendered() -> None:
    metrics = PrometheusMetrics()
    stage_view: Metrics = metrics
    stage_view.count("events", **DONE)
    stage_view.count("events", 2, code="done", stage="detect")
    stage_view.count("webhooks_refused")
    stage_view.observe("work", 0.3, **CLASS)
    stage_view.gauge("models_resident", 3)
    stage_view.gauge("models_resident", 2)
    read = samples(metrics)
    labels = tuple(sorted(CLASS.items()))
    assert read["wakeswap_events_total", tuple(sorted(DONE.items()))] == 3
    assert read["wakeswap_webhooks_refused_total", ()] == 1
    assert read["wakeswap_work_seconds_count", labels] == 1
    assert read["wakeswap_work_seconds_bucket", (("le", "0.25"), *labels)] == 0
    assert read["wakeswap_work_seconds_bucket", (("le", "0.5"), *labels)] == 1
    assert read["wakeswap_models_resident", ()] == 2
    assert read["process_resident_memory_bytes", ()] > 0


def test_a_label_cannot_break_out_of_its_line() -> None:
    metrics = PrometheusMetrics()
    metrics.count("events", stage="a", code='a"} 1\nwakeswap_fake_total 9')
    assert not any(name == "wakeswap_fake_total" for name, _ in samples(metrics))


def test_two_processes_worth_of_metrics_do_not_mix() -> None:
    one, two = PrometheusMetrics(), PrometheusMetrics()
    one.count("webhooks_refused")
    assert ("wakeswap_webhooks_refused_total", ()) not in samples(two)


@pytest.mark.parametrize("name", ["", "unheard_of", "models_resident", "work"])
def test_only_what_is_declared_as_a_counter_is_counted(name: str) -> None:
    with pytest.raises(ValueError, match="not declared"):
        PrometheusMetrics().count(name)


@pytest.mark.parametrize("labels", [{}, {"stage": "a"}, {**DONE, "tenant": "acme"}])
def test_the_labels_are_the_declared_ones(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="label"):
        PrometheusMetrics().count("events", **labels)


def test_first_use_from_many_threads_makes_one_metric() -> None:
    metrics = PrometheusMetrics()
    barrier = threading.Barrier(16)

    def use() -> None:
        barrier.wait(5)
        metrics.count("events", **DONE)
        metrics.observe("event", 1, stage="detect")

    threads = [threading.Thread(target=use) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert samples(metrics)["wakeswap_events_total", tuple(sorted(DONE.items()))] == 16
    assert samples(metrics)["wakeswap_event_seconds_count", (("stage", "detect"),)] == 16


def test_the_code_uses_what_is_declared_and_nothing_is_declared_that_it_does_not_use() -> None:
    """By name and labels, as they stand in the code: an error in production's only use of a metric shows here."""
    used = {}
    for folder in ("shared", "functions"):
        for path in (ROOT / folder).rglob("*.py"):
            for call in _calls(path):
                name, labels = call
                assert name in METRICS, f"{path}: {name}"
                if labels is not None:
                    assert labels == set(METRICS[name].labels), f"{path}: {name}"
                used[name] = path
    assert set(used) == set(METRICS)


def _calls(path: Path) -> list[tuple[str, set[str] | None]]:
    """Metrics that a module uses, with their labels where they are written out."""
    found: list[tuple[str, set[str] | None]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr not in ("count", "gauge", "observe") or not node.args:
            continue
        written = [word.arg for word in node.keywords]
        labels = None if None in written else {word for word in written if word is not None}
        names = _texts(node.args[0])
        found += [(name, labels) for name in names]
    return found


def _texts(node: ast.expr) -> list[str]:
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body), *_texts(node.orelse)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.replace("_", "").isalpha():
        return [node.value]
    return []


def test_no_label_can_hold_a_tenant_or_a_job() -> None:
    labels = {label for metric in METRICS.values() for label in metric.labels}
    assert labels.isdisjoint({"tenant", "job", "key", "path", "url", "address", "event"})
    assert all(metric.help.endswith(".") and metric.name == name for name, metric in METRICS.items())

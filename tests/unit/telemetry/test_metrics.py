"""Counters and histograms as Prometheus reads them."""

from __future__ import annotations

import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from shared.context import Metrics
from shared.telemetry.metrics import PrometheusMetrics


def samples(metrics: PrometheusMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {(it.name, tuple(sorted(it.labels.items()))): it.value for family in families for it in family.samples}


def test_counts_and_durations_are_rendered() -> None:
    metrics = PrometheusMetrics()
    stage_view: Metrics = metrics
    stage_view.count("events", stage="detect", outcome="completed")
    stage_view.count("events", 2, outcome="completed", stage="detect")
    stage_view.count("wakes")
    stage_view.observe("work", 0.3, stage="detect")
    read = samples(metrics)
    labels = (("outcome", "completed"), ("stage", "detect"))
    assert read["wakeswap_events_total", labels] == 3
    assert read["wakeswap_wakes_total", ()] == 1
    assert read["wakeswap_work_seconds_count", (("stage", "detect"),)] == 1
    assert read["wakeswap_work_seconds_bucket", (("le", "0.25"), ("stage", "detect"))] == 0
    assert read["wakeswap_work_seconds_bucket", (("le", "0.5"), ("stage", "detect"))] == 1
    assert read["process_resident_memory_bytes", ()] > 0


def test_a_label_cannot_break_out_of_its_line() -> None:
    metrics = PrometheusMetrics()
    metrics.count("events", code='a"} 1\nwakeswap_fake_total 9')
    assert not any(name == "wakeswap_fake_total" for name, _ in samples(metrics))


def test_two_processes_worth_of_metrics_do_not_mix() -> None:
    one, two = PrometheusMetrics(), PrometheusMetrics()
    one.count("events")
    assert ("wakeswap_events_total", ()) not in samples(two)


@pytest.mark.parametrize("name", ["", "Events", "a-b", "1st", "a\nb"])
def test_names(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        PrometheusMetrics().count(name)


def test_one_name_has_one_set_of_labels() -> None:
    metrics = PrometheusMetrics()
    metrics.count("events", stage="a")
    with pytest.raises(ValueError, match="label"):
        metrics.count("events", other="a")


def test_first_use_from_many_threads_makes_one_metric() -> None:
    metrics = PrometheusMetrics()
    barrier = threading.Barrier(16)

    def use() -> None:
        barrier.wait(5)
        metrics.count("events")
        metrics.observe("work", 1)

    threads = [threading.Thread(target=use) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert samples(metrics)["wakeswap_events_total", ()] == 16
    assert samples(metrics)["wakeswap_work_seconds_count", ()] == 16


def test_a_gauge_shows_its_last_value() -> None:
    metrics = PrometheusMetrics()
    metrics.gauge("models_resident", 3)
    metrics.gauge("models_resident", 2)
    assert samples(metrics)["wakeswap_models_resident", ()] == 2

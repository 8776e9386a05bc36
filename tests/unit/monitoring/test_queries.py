"""Dashboards and rules ask for what the code emits, in PromQL, and are those that the code makes."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml

from infra.monitoring.alerts import ALERTS
from infra.monitoring.dashboards import DASHBOARDS
from infra.monitoring.queries import TARGET, UndeclaredError, gauge, grown, quantile
from shared.telemetry.declared import METRICS
from tests.unit.monitoring.promql import (
    COMPONENT,
    EXTERNAL,
    ROOT,
    SERIES,
    Selector,
    grouped,
    panels,
    queries,
    rules,
    selectors,
    shown,
    used,
)


def test_the_files_are_those_that_the_code_makes() -> None:
    command = [sys.executable, "-m", "infra.monitoring", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "fresh\n")


def test_every_query_asks_for_declared_metrics_by_labels_that_they_have() -> None:
    assert len(queries()) > 50
    for query in queries():
        ours = [selector for selector in selectors(query) if selector.name not in EXTERNAL]
        assert ours or selectors(query), query
        for selector in ours:
            assert selector.name in SERIES, query
            assert set(selector.labels) <= {*SERIES[selector.name].labels, *TARGET}, query
        labels = {label for selector in ours for label in SERIES[selector.name].labels}
        assert not ours or grouped(query) <= {*labels, *TARGET, "le"}, query


def test_every_declared_metric_can_be_seen_somewhere() -> None:
    assert used() == set(METRICS)


def test_the_check_sees_what_it_looks_for() -> None:
    query = 'sum by (le) (rate(a_bucket{x="1"}[5m] offset 5m)) / on (y) (b{z=~"2"} or max_over_time(c[1h:5m]))'
    assert selectors(query) == {Selector("a_bucket", ("x",)), Selector("b", ("z",)), Selector("c", ())}
    assert grouped(query) == {"le", "y"}
    with pytest.raises(ValueError, match="unexpected character"):
        selectors("sum by (le) (a[5m)")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: grown("unheard_of", "5m"),
        lambda: grown("work", "5m"),
        lambda: grown("events", "5m", ("tenant",)),
        lambda: quantile(0.95, "work", "5m", stage_="swap"),
        lambda: gauge("events"),
    ],
)
def test_a_query_for_what_nobody_emits_cannot_be_written(ask: object) -> None:
    with pytest.raises(UndeclaredError):
        ask()  # type: ignore[operator]


def test_dashboards_can_be_told_apart_and_panels_do_not_overlap() -> None:
    assert len({one.uid for one in DASHBOARDS}) == len(DASHBOARDS)
    for dashboard in DASHBOARDS:
        titles = [panel.title for row in dashboard.rows for panel in row]
        assert len(set(titles)) == len(titles)
    taken = [(panel["gridPos"]["x"], panel["gridPos"]["w"]) for panel in panels()]
    assert all(x % width == 0 and x + width <= 24 for x, width in taken)
    listed = yaml.safe_load((COMPONENT / "kustomization.yaml").read_text())["configMapGenerator"][0]["files"]
    assert {f"dashboards/{one.uid}.json" for one in DASHBOARDS} == set(listed)
    assert len(shown()) > len(panels())


def test_every_alert_has_its_entry_in_the_runbook() -> None:
    lines = (ROOT / "docs/runbook.md").read_text().splitlines()
    headings = {line.removeprefix("## ") for line in lines if line.startswith("## ")}
    assert {alert.name for alert in ALERTS} <= headings
    for rule in rules():
        path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert (ROOT / path).is_file()
        assert anchor in {heading.lower() for heading in headings}
        assert rule["labels"]["severity"] in ("page", "ticket", "notice")
    readme = (COMPONENT / "README.md").read_text()
    assert f"{len(ALERTS)} alerts" in readme

"""The pages about observability say what the code does, and the picture is that of the spans beside it."""

from __future__ import annotations

import json
import re
import sys

from infra.monitoring.alerts import ALERTS
from shared.telemetry.declared import METRICS
from tests.unit.monitoring.promql import ROOT

PAGE = (ROOT / "docs/observability.md").read_text()

sys.path.insert(0, str(ROOT / "docs"))

import trace_picture  # noqa: E402 - a script, no package


def test_the_picture_is_drawn_from_the_spans_beside_it() -> None:
    spans = [json.loads(line) for line in trace_picture.SPANS.read_text().splitlines()]
    assert trace_picture.picture(spans) == trace_picture.PICTURE.read_text(), "run: python docs/trace_picture.py"
    services = {span["resource"]["attributes"]["service.name"] for span in spans if span["name"] == "cold start"}
    assert services == {"intake", "moderate", "detect", "swap", "enhance", "publish", "notify", "meter"}
    (first,) = (span for span in spans if span["kind"] == "SpanKind.SERVER")
    assert first["name"] == "POST /events/s3", "it begins with the notification of an upload"
    assert {"webhook", "enhance", "notify", "meter"} <= {span["name"] for span in spans}
    assert len({span["context"]["trace_id"] for span in spans}) == 1


def test_a_file_with_several_traces_gives_the_one_with_the_most_spans() -> None:
    spans = [json.loads(line) for line in trace_picture.SPANS.read_text().splitlines()]
    other = {**spans[0], "context": {**spans[0]["context"], "trace_id": "0x" + "1" * 32}}
    assert trace_picture.largest([other, *reversed(spans), other]) == spans


def test_the_page_lists_every_alert_with_its_severity() -> None:
    rows = dict(re.findall(r"^\| `(Wakeswap\w+)` \| (\w+) \|", PAGE, re.MULTILINE))
    assert rows == {alert.name: alert.severity for alert in ALERTS}


def test_pages_name_no_metric_that_nobody_emits() -> None:
    known = {name for metric in METRICS.values() for name in (*metric.series, metric.full)}
    for path in sorted((ROOT / "docs").glob("*.md")):
        for name in set(re.findall(r"`(wakeswap_[a-z_]+)`", path.read_text())):
            assert name in known, f"{path.name}: {name}"

"""Everything that dashboards and alerts look at is shown by real processes that did real work."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from shared.events.event import Event
from shared.telemetry.declared import METRICS
from tests.local.machine import Machine
from tests.local.test_pipeline import FACE, drop, post
from tests.local.test_trace import Webhook
from tests.unit.monitoring.promql import used

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ELSEWHERE = {
    "addresses_blocked": "tests/unit/edge/test_rates.py: addresses of this machine are never blocked",
    "requests_unlimited": "tests/unit/edge/test_rates_redis.py: redis must fail",
    "refusals_not_audited": "tests/unit/serving: the store must fail",
    "models_dropped": "tests/unit/models/test_residents.py: memory must be scarce",
    "models_over_budget": "tests/unit/models/test_residents.py: memory must be scarce",
    "fetch_bytes": "tests/unit/models/test_tally.py: the cache must be empty",
    "cache_misses": "tests/unit/models/test_tally.py: the cache must be empty",
}
"""Where what this run does not bring about is counted. That the code does: tests/unit/telemetry/test_metrics.py."""


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    webhook = Webhook(410)
    yield webhook
    webhook.server.shutdown()
    webhook.server.server_close()


def limited(docs: list[dict[str, Any]]) -> None:
    for doc in docs:
        if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
            doc["data"] |= {"WAKESWAP_RATE_PER_ADDRESS": "1"}
        if doc["kind"] == "PingSource" and doc["metadata"]["name"] == "waiting":
            doc["spec"]["schedule"] = "*/5 * * * * *"


def test_every_metric_of_dashboards_and_alerts_is_shown(tmp_path: Path, webhook: Webhook) -> None:
    one = Machine(tmp_path, limited, tenants=webhook.tenants(max_concurrent=1), idle=30)
    (one.state / "tenants").mkdir()
    (one.state / "tenants/acme.yaml").write_text("policy: {max_concurrent: none}")
    one.up()
    try:
        drop(one, 2)  # the second waits
        one.until(lambda: len(one.outcomes()) == 2, 90)
        assert post(one, FACE / "no_face.png", FACE / "one_face.jpg")[0] == 422
        held = post(one, FACE / "one_face.jpg", FACE / "one_face.jpg", prefer="wait=0")
        over = post(one, FACE / "one_face.jpg", FACE / "one_face.jpg", prefer="wait=0")
        assert (held[0], over[0]) == (202, 429)
        assert [anonymous(one) for _ in range(3)] == [401, 429, 429]
        one.until(lambda: "line_jobs" in seen(one, "intake"), 90)  # the clock's tick
        forge(one)
        missing = used() - set(ELSEWHERE)
        deadline = time.monotonic() + 90
        while missing and time.monotonic() < deadline:
            for service in one.admin("/status")["services"]:
                missing -= seen(one, service)
        assert missing == set()
    finally:
        one.down()


def seen(machine: Machine, service: str) -> set[str]:
    """Names in the code of the metrics that a function's process shows now; asking wakes it."""
    with urllib.request.urlopen(machine.facts()["services"][service] + "/metrics", timeout=60) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    names = {sample.name for family in families for sample in family.samples}
    return {name for name, metric in METRICS.items() if set(metric.series) <= names}


def anonymous(machine: Machine) -> int:
    try:
        urllib.request.urlopen(machine.facts()["services"]["intake"] + "/v1/jobs", timeout=60).close()
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return 200


def forge(machine: Machine) -> None:
    """An event that says it is ours: the stage refuses it, and the broker buries it."""
    event = Event(id="forged", source="/wakeswap/detect", type="dev.wakeswap.detect.completed.v1", subject="0b7e4a4e")
    headers = {"ce-specversion": "1.0", "ce-id": event.id, "ce-source": event.source, "ce-type": event.type,
               "ce-subject": event.subject, "ce-tenantid": "demo", "Content-Type": "application/json"}  # fmt: skip
    request = urllib.request.Request(machine.facts()["platform"] + "/wakeswap/default", b"{}", headers)
    urllib.request.urlopen(request, timeout=30).close()

"""The alerts fire when they should and not before: real PromQL over series as functions leave them, by promtool.

`promtool` comes with Debian's package `prometheus` (.ci/run installs it).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from infra.monitoring.alerts import ALERTS
from tests.unit.monitoring.promql import rules

pytestmark = pytest.mark.slow
POD = 'namespace="wakeswap",pod="{pod}",service="x"'


@dataclass(frozen=True)
class Case:
    """`series`: name and labels, then values a minute in promtool's notation (`_`: not scraped)."""

    alert: str
    series: tuple[tuple[str, str], ...]
    at: str
    fires: int
    """How many alerts, each with labels of its own."""


def one(name: str, labels: str, values: str, pod: str = "a") -> tuple[str, str]:
    return f"{name}{{{POD.format(pod=pod)}{',' + labels if labels else ''}}}", values


def buckets(name: str, labels: str, values: dict[str, str], pod: str = "a") -> tuple[tuple[str, str], ...]:
    return tuple(one(f"{name}_bucket", f'{labels},le="{le}"', text, pod) for le, text in values.items())


def counted(alert: str, name: str, labels: str, most: int) -> list[Case]:
    """A counter that may grow by `most` within the window of its alert."""
    return [
        # a function that woke, counted and is gone before the next minute: two scrapes saw it, at one value
        Case(alert, (one(name, labels, f"_x10 {most + 1} {most + 1} stale"),), "12m", 1),
        Case(alert, (one(name, labels, f"_x10 {most} {most} stale"),), "12m", 0),
        # spread over processes, none of which is over it
        Case(alert, tuple(one(name, labels, f"_x10 {most // 2 + 1}x2 stale", pod) for pod in "ab"), "12m", 1),
        # one that has run for hours: what it counted then is over
        Case(alert, (one(name, labels, f"{most + 100}x90"),), "80m", 0),
        Case(alert, (one(name, labels, f"{most + 100}x70 {2 * most + 103}x20"),), "75m", 1),
        Case(alert, (one(name, labels, f"_x10 {most + 1} {most + 1} stale"),), "70m", 0),
    ]


def slow(alert: str, name: str, labels: str, limit: str, over: str) -> list[Case]:
    """A duration of which one in a fresh process is over the limit, or under it."""
    woke = {limit: "_x10 0 0 0 stale", over: "_x10 1 1 1 stale", "+Inf": "_x10 1 1 1 stale"}
    quick = {limit: "_x10 1 1 1 stale", over: "_x10 1 1 1 stale", "+Inf": "_x10 1 1 1 stale"}
    long_ago = {limit: "0x90", over: "5x90", "+Inf": "5x90"}
    return [
        Case(alert, buckets(name, labels, woke), "17m", 1),
        Case(alert, buckets(name, labels, quick), "17m", 0),
        Case(alert, buckets(name, labels, long_ago), "80m", 0),
        Case(alert, (*buckets(name, labels, quick), *buckets(name, labels, woke, "b")), "17m", 1),
    ]


LOOKED = "wakeswap_line_looked_timestamp_seconds"
LINE = [
    # found long for six minutes; the pods take turns, and a long line that one saw before counts no more
    Case(
        "WakeswapBacklog",
        (
            one("wakeswap_line_jobs", 'priority="interactive"', "90x9"),
            one("wakeswap_line_jobs", 'priority="batch"', "20x9"),
            one(LOOKED, "", "0+60x9"),
        ),
        "6m",
        1,
    ),
    Case(
        "WakeswapBacklog", (one("wakeswap_line_jobs", 'priority="batch"', "100x9"), one(LOOKED, "", "0+60x9")), "6m", 0
    ),
    Case(
        "WakeswapBacklog", (one("wakeswap_line_jobs", 'priority="batch"', "500x9"), one(LOOKED, "", "0+60x9")), "4m", 0
    ),
    Case(
        "WakeswapBacklog",
        (
            one("wakeswap_line_jobs", 'priority="batch"', "500x9"),
            one(LOOKED, "", "0x9"),
            one("wakeswap_line_jobs", 'priority="batch"', "0x9", "b"),
            one(LOOKED, "", "0+60x9", "b"),
        ),
        "8m",
        0,
    ),
    # the process that found it long sleeps since, and no job ends
    Case(
        "WakeswapBacklog",
        (one("wakeswap_line_jobs", 'priority="batch"', "500 stale"), one(LOOKED, "", "0 stale")),
        "9m",
        1,
    ),
]
OTHER = 'namespace="tenant-acme",pod="{pod}",service="x"'


def elsewhere(name: str, labels: str, values: str, pod: str = "z") -> tuple[str, str]:
    return f"{name}{{{OTHER.format(pod=pod)}{',' + labels if labels else ''}}}", values


NO_NUMBER, ENDLESS = " ".join(["NaN"] * 10), " ".join(["Inf"] * 10)
BATCH, QUEUE = 'priority="batch"', 'stage="swap",tenant_class="shared",priority="interactive"'
EDGES = [
    # at the limit and one over it, for as long as it must be so and a minute less
    Case("WakeswapBacklog", (one("wakeswap_line_jobs", BATCH, "101x9"), one(LOOKED, "", "0+60x9")), "5m", 1),
    Case("WakeswapBacklog", (one("wakeswap_line_jobs", BATCH, "101x9"), one(LOOKED, "", "0+60x9")), "4m", 0),
    # two installations that are each below it are not one that is above, and two above are two
    *(
        Case(
            "WakeswapBacklog",
            (
                one("wakeswap_line_jobs", BATCH, f"{jobs}x9"),
                one(LOOKED, "", "0+60x9"),
                elsewhere("wakeswap_line_jobs", BATCH, f"{jobs}x9"),
                elsewhere(LOOKED, "", "0+60x9"),
            ),
            "6m",
            fires,
        )
        for jobs, fires in ((60, 0), (200, 2))
    ),
    # no number at all, and one that no queue has
    Case("WakeswapBacklog", (one("wakeswap_line_jobs", BATCH, NO_NUMBER), one(LOOKED, "", "0+60x9")), "6m", 0),
    Case("WakeswapBacklog", (one("wakeswap_line_jobs", BATCH, ENDLESS), one(LOOKED, "", "0+60x9")), "6m", 1),
    Case("WakeswapTenantFileUnusable", (one("wakeswap_tenant_files_unusable", "", NO_NUMBER),), "6m", 0),
    # a counter that begins anew under the same name: what it counts from then on counts
    Case("WakeswapGpu", (one("wakeswap_events_total", 'stage="swap",code="gpu_fault"', "9x60 0x9 4x9"),), "75m", 1),
    Case("WakeswapGpu", (one("wakeswap_events_total", 'stage="swap",code="gpu_fault"', "9x60 0x30"),), "85m", 0),
    # as many as it takes, of which no stage, code or tenants' class alone has enough
    Case(
        "WakeswapGpu",
        tuple(one("wakeswap_events_total", f'stage="{stage}",code="{code}"', "_x10 3 3 stale")
              for stage in ("swap", "enhance") for code in ("gpu_fault", "gpu_out_of_memory")),
        "12m",
        0,
    ),
    Case(
        "WakeswapQuotaRefusals",
        tuple(one("wakeswap_quota_refusals_total", f'limit="max_concurrent",tenant_class="{kind}"', "_x10 30 30 stale")
              for kind in ("shared", "dedicated")),
        "12m",
        0,
    ),
    # one scrape in the whole life of a process
    Case("WakeswapDeadLetters", (one("wakeswap_dead_letters_total", 'type="foreign"', "_x10 1 stale"),), "12m", 1),
    # nothing was counted at all, and all of it took longer than the highest bound
    Case("WakeswapQueueOld", buckets("wakeswap_queue_age_seconds", QUEUE, {"60": "0x20", "+Inf": "0x20"}), "17m", 0),
    Case(
        "WakeswapQueueOld",
        buckets("wakeswap_queue_age_seconds", QUEUE, {"60": "_x10 0 0 0", "3600": "_x10 0 0 0", "+Inf": "_x10 2 2 2"}),
        "17m",
        1,
    ),
    # 94 quick ones in a hundred, and 96
    *(
        Case(
            "WakeswapWakeSlow",
            buckets(
                "wakeswap_wake_seconds", 'stage="swap"',
                {"30": f"_x10 {quick}x3", "60": "_x10 100x3", "+Inf": "_x10 100x3"},
            ),
            "12m",
            fires,
        )
        for quick, fires in ((94, 1), (96, 0))
    ),
]  # fmt: skip
LAG = 'kafka_consumergroup_lag{consumergroup="knative-trigger-wakeswap-swap",partition="%s"}'
CASES = [
    *LINE,
    *EDGES,
    Case("WakeswapBrokerBacklog", ((LAG % 0, "60x9"), (LAG % 1, "60x9")), "6m", 1),
    Case("WakeswapBrokerBacklog", ((LAG % 0, "60x9"), (LAG % 1, "40x9")), "6m", 0),
    *slow(
        "WakeswapQueueOld", "wakeswap_queue_age_seconds",
        'stage="swap",tenant_class="shared",priority="interactive"', "60", "120",
    ),
    Case(
        "WakeswapQueueOld",
        buckets(
            "wakeswap_queue_age_seconds", 'stage="swap",tenant_class="shared",priority="batch"',
            {"60": "_x10 0 0 0", "120": "_x10 9 9 9", "+Inf": "_x10 9 9 9"},
        ),
        "17m",
        0,
    ),
    *slow("WakeswapWakeSlow", "wakeswap_wake_seconds", 'stage="swap"', "30", "60"),
    *counted("WakeswapDeadLetters", "wakeswap_dead_letters_total", 'type="foreign"', 0),
    *counted("WakeswapBug", "wakeswap_events_total", 'stage="swap",code="internal_error"', 0),
    Case("WakeswapBug", (one("wakeswap_events_total", 'stage="swap",code="done"', "_x10 9 9"),), "12m", 0),
    *counted("WakeswapGpu", "wakeswap_events_total", 'stage="swap",code="gpu_fault"', 3),
    *counted("WakeswapCacheMisses", "wakeswap_cache_misses_total", 'where="stage",model="x"', 5),
    Case("WakeswapCacheMisses", (one("wakeswap_cache_misses_total", 'where="init",model="x"', "_x10 9 9"),), "12m", 0),
    *counted("WakeswapQuotaRefusals", "wakeswap_quota_refusals_total", 'limit="max_batch",tenant_class="shared"', 50),
    *counted("WakeswapRateRefusals", "wakeswap_rate_refusals_total", 'rule="key"', 200),
    *counted("WakeswapRatesOff", "wakeswap_requests_unlimited_total", "", 0),
    *counted("WakeswapUntrustedEvents", "wakeswap_events_total", 'stage="swap",code="untrusted_event"', 0),
    *counted("WakeswapAuditGap", "wakeswap_refusals_not_audited_total", "", 0),
    Case("WakeswapTenantFileUnusable", (one("wakeswap_tenant_files_unusable", "", "1x9"),), "6m", 1),
    Case("WakeswapTenantFileUnusable", (one("wakeswap_tenant_files_unusable", "", "1 1 0x9"),), "6m", 0),
    *counted("WakeswapWebhooksRefused", "wakeswap_webhooks_refused_total", "", 20),
]  # fmt: skip


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    for fires in (True, False):
        assert {case.alert for case in CASES if bool(case.fires) is fires} == {alert.name for alert in ALERTS}


def test_the_rules_pass_promtools_own_check(tmp_path: Path) -> None:
    assert "15 rules found" in promtool("check", "rules", str(written(tmp_path)))


@pytest.mark.parametrize("name", [alert.name for alert in ALERTS])
def test_an_alert_fires_when_it_should(name: str, tmp_path: Path) -> None:
    """By promtool: counts of alerts, since their values are those of extrapolated increases."""
    tests = [_test(case) for case in CASES if case.alert == name]
    file = tmp_path / "tests.yml"
    file.write_text(json.dumps({"rule_files": [str(written(tmp_path))], "evaluation_interval": "1m", "tests": tests}))
    assert "SUCCESS" in promtool("test", "rules", str(file))


def written(folder: Path) -> Path:
    file = folder / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "wakeswap", "rules": rules()}]}))
    return file


def _test(case: Case) -> dict[str, Any]:
    """Prometheus keeps a firing alert as the series ALERTS; one for each set of labels."""
    count = f'count(ALERTS{{alertname="{case.alert}", alertstate="firing"}}) or vector(0)'
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series],
        "promql_expr_test": [
            {"expr": count, "eval_time": case.at, "exp_samples": [{"labels": "{}", "value": case.fires}]}
        ],
    }


def promtool(*arguments: str) -> str:
    program = shutil.which("promtool")
    assert program, "promtool is not installed: apt-get install prometheus (.ci/run does)"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

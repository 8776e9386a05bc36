"""docs/metrics.md: every metric as the code declares it."""

from __future__ import annotations

from marking import MADE, code, table

from shared.telemetry.declared import METRICS

_INTRODUCTION = """Counters, gauges and histograms of each function's `/metrics`, beside `process_*`.
A duration is a histogram in seconds (`_bucket`, `_sum`, `_count`). A metric is there from its first use on: a process
that has only woken shows `wakeswap_wake_seconds` and little else. How they are scraped, the dashboards and the alerts:
[observability.md](observability.md)."""

_LABELS = {
    "stage": "the folder of `functions/`",
    "code": "a code of the error tree (`shared/errors.py`, `rejections.py`, `refusals.py`), or `done`",
    "tenant_class": "`shared` or `dedicated`, the policy's `isolation`; `none` where no tenant is known",
    "priority": "`interactive` or `batch`",
    "provider": "`cpu`, `cuda` or `tensorrt`",
    "limit": "the policy's field: `max_concurrent`, `max_batch`, `jobs_per_minute`, `jobs_per_day`",
    "where": "`init`, the step before a function, or `stage`, the function itself",
    "model": "a name of the catalogue",
    "rule": "`key`, `address`, `notifications` or `block`",
    "route": "`submit`, `show`, `list`, `cancel`, `result`, `notifications`, `openapi`",
    "status": "the HTTP status",
    "type": "the event's type, or `foreign`",
    "reason": "a word",
    "check": "`nsfw` or `words`",
    "action": "`pass`, `reject`, `review` or `blur`",
    "outcome": "`completed`, `rejected` or `failed`",
}
"""What values each label has: few, whatever tenants do."""


def page() -> str:
    rows = [
        (code(metric.full), metric.kind, ", ".join(map(code, metric.labels)), metric.help)
        for metric in METRICS.values()
    ]
    used = sorted({label for metric in METRICS.values() for label in metric.labels})
    labels = [(code(label), _LABELS[label]) for label in used]
    return (
        "\n\n".join(
            (
                MADE,
                "# Metrics",
                _INTRODUCTION,
                table(("Metric", "Kind", "Labels", "Meaning"), rows),
                "## Labels",
                "Never a tenant, a job, a path or an address: a label's values must have a bound.",
                table(("Label", "Values"), labels),
            )
        )
        + "\n"
    )

"""The alert rules: when somebody has to look, and where it says what to do. Plain data over `queries`.

Each has its entry of the same name in docs/runbook.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from infra.monitoring.queries import gauge, grown, line_jobs, quantile

RUNBOOK = "docs/runbook.md"
SPACE = ("namespace",)


@dataclass(frozen=True)
class Alert:
    name: str
    expression: str
    severity: str
    """`page`: now, jobs fail or stand; `ticket`: today; `notice`: worth knowing."""
    summary: str
    lasts: str = "0m"
    """How long it must be so."""


ALERTS = (
    Alert(
        "WakeswapBacklog",
        f"sum by (namespace) ({line_jobs()}) > 100",
        "page",
        "{{ $value | humanize }} jobs have waited for a slot for 5 minutes.",
        "5m",
    ),
    Alert(
        "WakeswapBrokerBacklog",
        'sum by (consumergroup) (kafka_consumergroup_lag{consumergroup=~"knative-trigger-.*"}) > 100',
        "page",
        "{{ $value | humanize }} events of {{ $labels.consumergroup }} have waited in the broker for 5 minutes.",
        "5m",
    ),
    Alert(
        "WakeswapQueueOld",
        quantile(0.95, "queue_age", "10m", ("namespace", "stage"), priority="interactive") + " > 60",
        "page",
        "Interactive events are {{ $value | humanizeDuration }} old (p95) when {{ $labels.stage }} takes them.",
        "5m",
    ),
    Alert(
        "WakeswapWakeSlow",
        quantile(0.95, "wake", "30m", ("namespace", "stage")) + " > 30",
        "ticket",
        "{{ $labels.stage }} takes {{ $value | humanizeDuration }} (p95) to wake.",
    ),
    Alert(
        "WakeswapDeadLetters",
        grown("dead_letters", "10m", ("namespace", "type")) + " > 0",
        "page",
        "{{ $value | humanize }} events {{ $labels.type }} could not be delivered; their jobs have failed.",
    ),
    Alert(
        "WakeswapBug",
        grown("events", "10m", ("namespace", "stage"), code="internal_error") + " > 0",
        "page",
        "{{ $labels.stage }} met an error that it does not know, {{ $value | humanize }} times.",
    ),
    Alert(
        "WakeswapGpu",
        grown("events", "30m", ("namespace", "stage", "code"), code="~gpu_.*") + " > 3",
        "ticket",
        "{{ $labels.stage }} refused {{ $value | humanize }} events with {{ $labels.code }}.",
    ),
    Alert(
        "WakeswapCacheMisses",
        grown("cache_misses", "10m", ("namespace", "model"), where="stage") + " > 5",
        "ticket",
        "{{ $value | humanize }} jobs waited for a download of {{ $labels.model }}.",
    ),
    Alert(
        "WakeswapQuotaRefusals",
        grown("quota_refusals", "10m", ("namespace", "limit", "tenant_class")) + " > 50",
        "ticket",
        "{{ $value | humanize }} requests of {{ $labels.tenant_class }} tenants were over {{ $labels.limit }}.",
    ),
    Alert(
        "WakeswapRateRefusals",
        grown("rate_refusals", "10m", ("namespace", "rule")) + " > 200",
        "notice",
        "{{ $value | humanize }} requests were refused for asking too often ({{ $labels.rule }}).",
    ),
    Alert(
        "WakeswapRatesOff",
        grown("requests_unlimited", "10m", SPACE) + " > 0",
        "ticket",
        "{{ $value | humanize }} requests passed without a rate limit: its store does not answer.",
    ),
    Alert(
        "WakeswapUntrustedEvents",
        grown("events", "10m", ("namespace", "stage"), code="untrusted_event") + " > 0",
        "page",
        "{{ $labels.stage }} got {{ $value | humanize }} events that this installation did not make.",
    ),
    Alert(
        "WakeswapAuditGap",
        grown("refusals_not_audited", "10m", SPACE) + " > 0",
        "page",
        "{{ $value | humanize }} refusals are not on record: the store did not take them.",
    ),
    Alert(
        "WakeswapTenantFileUnusable",
        f"max by (namespace) ({gauge('tenant_files_unusable')}) > 0",
        "ticket",
        "{{ $value | humanize }} tenants' files cannot be read; their old policies hold.",
        "5m",
    ),
    Alert(
        "WakeswapWebhooksRefused",
        grown("webhooks_refused", "30m", SPACE) + " > 20",
        "notice",
        "{{ $value | humanize }} announcements were refused by tenants' webhooks.",
    ),
)

"""Every metric there is: its name in the code, its labels, its meaning. Plain data.

Prometheus sees a counter as `wakeswap_<name>_total`, a gauge as `wakeswap_<name>`, a duration as the histogram
`wakeswap_<name>_seconds`. Labels have few values each, whatever tenants do: a stage, a code of the error tree, a
catalogue's model, a class of tenants; never a tenant, a job or a path. docs/observability.md shows the table, and the
dashboards and alert rules in knative/components/monitoring may use nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

NAMESPACE = "wakeswap"

Kind = Literal["counter", "gauge", "duration"]

SHORT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds in seconds: from a warm light stage to the longest delivery."""
LONG = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
"""For waits: from the next hop to an hour's backlog."""


@dataclass(frozen=True)
class Metric:
    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = SHORT

    @property
    def full(self) -> str:
        """As Prometheus names it."""
        return f"{NAMESPACE}_{self.name}{_SUFFIXES[self.kind]}"

    @property
    def series(self) -> tuple[str, ...]:
        """The names that queries may use."""
        return (
            tuple(self.full + part for part in ("_bucket", "_sum", "_count"))
            if self.kind == "duration"
            else (self.full,)
        )


_SUFFIXES: dict[Kind, str] = {"counter": "_total", "gauge": "", "duration": "_seconds"}
_CLASS = ("stage", "tenant_class", "priority")

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("events", "counter", ("stage", "code"), "Deliveries answered: `done`, or the code of the refusal."),
        Metric("event", "duration", ("stage",), "From a delivery to its answer, refusals and repeats included."),
        Metric(
            "queue_age",
            "duration",
            _CLASS,
            "From an event's own time to its taking: broker, cold start, retries.",
            LONG,
        ),
        Metric("work", "duration", _CLASS, "Work on an event that was taken, from taking it to its finished reply."),
        Metric("wake", "duration", ("stage",), "From the start of the process to ready; once in each process.", LONG),
        Metric(
            "device_seconds",
            "counter",
            ("stage", "provider", "tenant_class"),
            "Seconds that models ran, by where (`cpu`, `cuda`, `tensorrt`), also for work that failed.",
        ),
        Metric(
            "rejections", "counter", ("stage", "code", "tenant_class"), "Jobs refused for their caller's own fault."
        ),
        Metric("quota_refusals", "counter", ("limit", "tenant_class"), "Requests answered 429, by the policy's limit."),
        Metric(
            "jobs_queued",
            "counter",
            ("limit", "tenant_class"),
            "Uploads whose jobs had to wait, by the policy's limit.",
        ),
        Metric(
            "segments_asked_again",
            "counter",
            (),
            "Segments of videos asked for again: their clips were gone, or the video stood still.",
        ),
        Metric("line_jobs", "gauge", ("priority",), "Jobs in the line for a slot when it was last looked at."),
        Metric("line_looked_timestamp_seconds", "gauge", (), "When that was: as jobs end, and every ten minutes."),
        Metric(
            "rate_refusals",
            "counter",
            ("rule",),
            "Requests refused for asking too often: `key`, `address`, `notifications`, `block`.",
        ),
        Metric("addresses_blocked", "counter", (), "Addresses blocked for too many wrong keys or tokens."),
        Metric(
            "requests_unlimited", "counter", (), "Requests that passed unlimited: the store of rates did not answer."
        ),
        Metric("requests", "counter", ("route", "status"), "Requests to the HTTP API, by route and status."),
        Metric("refusals_repeated", "counter", (), "Refusals that are on record already in this minute."),
        Metric("refusals_not_audited", "counter", (), "Refusals that the store did not take on record."),
        Metric("uploads_ignored", "counter", ("reason",), "Upload notifications that lead to no job."),
        Metric(
            "dead_letters", "counter", ("type",), "Events that the broker gave up on, by type; `foreign`: not ours."
        ),
        Metric("webhooks_refused", "counter", (), "Announcements that a tenant's webhook does not want or cannot get."),
        Metric("moderated", "counter", ("check", "action"), "Findings of moderation, by check and action."),
        Metric("jobs_metered", "counter", ("outcome",), "Usage records written."),
        Metric("model_hits", "counter", ("model",), "Models asked for that were in memory."),
        Metric("model_load", "duration", ("model", "provider"), "Loading a model, its fetch included."),
        Metric("models_resident", "gauge", (), "Models in memory."),
        Metric("models_resident_bytes", "gauge", (), "Bytes of their files."),
        Metric("models_dropped", "counter", ("model",), "Models dropped from memory to make room."),
        Metric(
            "models_over_budget", "counter", ("model",), "Loads that passed the memory budget, all others being in use."
        ),
        Metric(
            "cache_hits",
            "counter",
            ("where", "model"),
            "Models whose files were in the cache: `init`, or `stage` for jobs.",
        ),
        Metric(
            "cache_misses",
            "counter",
            ("where", "model"),
            "Models whose files had to be fetched; for `stage` a job waited.",
        ),
        Metric("fetch_bytes", "counter", ("where", "model"), "Bytes of models fetched into the cache."),
        Metric("tenant_files", "gauge", (), "Files of tenants that were read."),
        Metric(
            "tenant_files_unusable", "gauge", (), "Of these, those that are broken: the tenant keeps its old policy."
        ),
    )
}

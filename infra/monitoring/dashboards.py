"""The Grafana dashboards: rows of panels over `queries`, and the JSON that Grafana reads.

Counts are those of five minutes, so that a number on the screen is a number of things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infra.monitoring.queries import gauge, grown, line_jobs, observed, quantile

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

NAME = "wakeswap"
WINDOW = "5m"
QUANTILES = (0.5, 0.95)
HEIGHT, WIDTH = 8, 24
IN = {"namespace": "~$namespace"}


@dataclass(frozen=True)
class Query:
    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    title: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    about: str = ""


@dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    rows: tuple[tuple[Panel, ...], ...]


def _counts(title: str, name: str, *by: str, unit: str = "short", about: str = "", **match: str) -> Panel:
    legend = " ".join(f"{{{{{label}}}}}" for label in by) or "all"
    return Panel(title, (Query(grown(name, WINDOW, by, **IN, **match), legend),), unit, about=about)


def _times(title: str, name: str, *by: str, window: str = WINDOW, about: str = "", **match: str) -> Panel:
    legend = " ".join(f"{{{{{label}}}}}" for label in by)
    queries = [Query(quantile(q, name, window, by, **IN, **match), f"{legend} p{q * 100:g}") for q in QUANTILES]
    return Panel(title, tuple(queries), "s", about=about)


JOBS = Dashboard(
    "wakeswap-jobs",
    "Wakeswap: jobs",
    (
        (
            Panel("Jobs that wait for a slot", (Query(line_jobs(), "{{namespace}} {{priority}}"),)),
            _times(
                "How old events are when they are taken", "queue_age", "stage", about="Broker, cold start, retries."
            ),
            _counts("Jobs ended", "jobs_metered", "outcome"),
        ),
        (
            _counts("Rejected, by code", "rejections", "code", "tenant_class"),
            _counts("Moderated", "moderated", "check", "action"),
            _counts("Dead letters", "dead_letters", "type", about="Their jobs have failed and can be replayed."),
        ),
        (
            _counts("Requests over quota", "quota_refusals", "limit", "tenant_class"),
            _counts("Uploads that had to wait", "jobs_queued", "limit", "tenant_class"),
            _counts("Webhooks refused", "webhooks_refused"),
            _counts("Segments of videos asked for again", "segments_asked_again", about="They stood still."),
        ),
        (
            Panel(
                "What went wrong",
                (Query('{namespace=~"$namespace"} | json | level=~"ERROR|CRITICAL"', ""),),
                kind="logs",
                about="Loki; a line's trace_id finds its trace.",
            ),
        ),
    ),
)

FUNCTIONS = Dashboard(
    "wakeswap-functions",
    "Wakeswap: functions",
    (
        (
            Panel(
                "Processes awake",
                (Query('count by (service) (process_start_time_seconds{namespace=~"$namespace"})', "{{service}}"),),
            ),
            Panel("Wakes", (Query(observed("wake", WINDOW, ("stage",), **IN), "{{stage}}"),)),
            _times("Seconds to wake", "wake", "stage", window="30m", about="From the start of the process to ready."),
        ),
        (
            _times("Seconds of work", "work", "stage"),
            _counts("Device seconds", "device_seconds", "stage", "provider", unit="s"),
            _counts("Device seconds by tenants' class", "device_seconds", "tenant_class", "provider", unit="s"),
        ),
        (
            _counts("Deliveries refused", "events", "stage", "code", code="!done"),
            _counts("Deliveries done", "events", "stage", code="done"),
            _times("Seconds to an answer", "event", "stage"),
        ),
        (
            Panel(
                "Models in the cache: hit and missed",
                (
                    Query(grown("cache_hits", WINDOW, ("where",), **IN), "{{where}} hit"),
                    Query(grown("cache_misses", WINDOW, ("where",), **IN), "{{where}} missed"),
                ),
                about="init: the step before the function. stage: a job waited.",
            ),
            _counts("Bytes fetched", "fetch_bytes", "where", "model", unit="bytes"),
            _times("Seconds to load a model", "model_load", "model", "provider", window="30m"),
        ),
        (
            Panel(
                "Models in memory",
                (
                    Query(f"max by (service) ({gauge('models_resident_bytes', **IN)})", "{{service}}"),
                    Query(f"max by (service) ({gauge('models_resident', **IN)})", "{{service}}: how many"),
                ),
                "bytes",
            ),
            Panel(
                "Models asked for and there, dropped, over budget",
                (
                    Query(grown("model_hits", WINDOW, ("model",), **IN), "{{model}} there"),
                    Query(grown("models_dropped", WINDOW, ("model",), **IN), "{{model}} dropped"),
                    Query(grown("models_over_budget", WINDOW, ("model",), **IN), "{{model}} over budget"),
                ),
            ),
            Panel(
                "Memory of processes",
                (Query('max by (service) (process_resident_memory_bytes{namespace=~"$namespace"})', "{{service}}"),),
                "bytes",
            ),
        ),
    ),
)

EDGE = Dashboard(
    "wakeswap-edge",
    "Wakeswap: edge",
    (
        (
            _counts("Requests", "requests", "route", "status"),
            _counts("Asked too often", "rate_refusals", "rule"),
            _counts("Addresses blocked", "addresses_blocked"),
        ),
        (
            _counts("Passed without a limit", "requests_unlimited", about="The store of rates does not answer."),
            _counts("Upload notifications ignored", "uploads_ignored", "reason"),
            Panel(
                "Refusals on record",
                (
                    Query(grown("refusals_repeated", WINDOW, (), **IN), "on record before, in this minute"),
                    Query(grown("refusals_not_audited", WINDOW, (), **IN), "not on record"),
                ),
            ),
        ),
        (
            Panel(
                "Tenants' files",
                (
                    Query(f"max by (namespace) ({gauge('tenant_files', **IN)})", "{{namespace}}"),
                    Query(f"max by (namespace) ({gauge('tenant_files_unusable', **IN)})", "{{namespace}}: unusable"),
                ),
            ),
        ),
    ),
)

DASHBOARDS = (JOBS, FUNCTIONS, EDGE)


def grafana(dashboard: Dashboard) -> dict[str, Json]:
    """The dashboard in Grafana's JSON model, for its sidecar or for an import by hand."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": [NAME],
        "schemaVersion": 39,
        "editable": False,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [*_variables()]},
        "panels": [*_panels(dashboard.rows)],
    }


def _variables() -> list[Json]:
    sources: list[Json] = [
        {"name": kind, "label": kind.capitalize(), "type": "datasource", "query": kind}
        for kind in ("prometheus", "loki")
    ]
    names: Json = {
        "name": "namespace",
        "label": "Namespace",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${prometheus}"},
        "query": {"query": "label_values(wakeswap_wake_seconds_count, namespace)", "refId": "namespaces"},
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }
    return [*sources, names]


def _panels(rows: Sequence[Sequence[Panel]]) -> list[Json]:
    panels: list[Json] = []
    for line, row in enumerate(rows):
        width = WIDTH // len(row)
        for column, panel in enumerate(row):
            place: Json = {"x": column * width, "y": line * HEIGHT, "w": width, "h": HEIGHT}
            panels.append(_panel(panel, len(panels) + 1, place))
    return panels


def _panel(panel: Panel, number: int, place: Json) -> Json:
    source = "loki" if panel.kind == "logs" else "prometheus"
    datasource: Json = {"type": source, "uid": f"${{{source}}}"}
    shown: dict[str, Json] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": datasource,
        "gridPos": place,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "expr": query.expression,
                "legendFormat": query.legend,
                "datasource": datasource,
            }
            for index, query in enumerate(panel.queries)
        ],
    }
    if panel.kind == "timeseries":
        custom: Json = {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": 60_000}
        shown["fieldConfig"] = {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []}
        shown["options"] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return shown

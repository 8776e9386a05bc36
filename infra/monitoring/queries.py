"""PromQL for metrics of processes that come and go. Pure text; names are checked against the declared metrics.

A function wakes, counts, and is gone: its counters are 1 in the first scrape that sees them. Prometheus' rate() and
increase() take the difference of two samples, so that what happened before the first one is nothing to them: a wake or
a dead letter in a fresh process would never show. `grown` takes a series that did not exist a window ago by its whole
value.
"""

from __future__ import annotations

from shared.telemetry.declared import METRICS, Kind


class UndeclaredError(LookupError):
    """A query names a metric, or a label of one, that the code does not emit."""


TARGET = ("namespace", "pod", "service")
"""Labels that the scrape adds (knative/components/monitoring/scrape.yaml)."""


def grown(name: str, window: str, by: tuple[str, ...] = (), **match: str) -> str:
    """How much a counter grew within `window`, over all processes, also those that began or ended in it.

    `match`: values of labels, or `~` and a regular expression, or `!` and the one value that is not meant.
    """
    series = _series(name, "counter", f"wakeswap_{name}_total", by, match)
    return f"sum{_by(by)} ({_growth(series, window)})"


def quantile(q: float, name: str, window: str, by: tuple[str, ...] = (), **match: str) -> str:
    """Of a duration, over all that was observed within `window`, in seconds."""
    series = _series(name, "duration", f"wakeswap_{name}_seconds_bucket", by, match)
    return f"histogram_quantile({q}, sum{_by(('le', *by))} ({_growth(series, window)}))"


def observed(name: str, window: str, by: tuple[str, ...] = (), **match: str) -> str:
    """How many durations were observed within `window`."""
    series = _series(name, "duration", f"wakeswap_{name}_seconds_count", by, match)
    return f"sum{_by(by)} ({_growth(series, window)})"


def gauge(name: str, **match: str) -> str:
    return _series(name, "gauge", f"wakeswap_{name}", (), match)


def line_jobs() -> str:
    """Jobs in the line, by namespace and priority: what the process says that looked last.

    Intake looks as jobs end and every ten minutes, another of its processes each time, and may sleep between; what the
    others saw before is old.
    """
    looked = f"last_over_time({gauge('line_looked_timestamp_seconds')}[12m])"
    last = f"({looked} == on (namespace) group_left max by (namespace) ({looked}))"
    return f"max by (namespace, priority) (last_over_time({gauge('line_jobs')}[12m]) and on (namespace, pod) {last})"


def _growth(series: str, window: str) -> str:
    old = f"{series} offset {window}"
    return f"(increase({series}[{window}]) and {old}) or (max_over_time({series}[{window}]) unless {old})"


def _series(name: str, kind: Kind, full: str, by: tuple[str, ...], match: dict[str, str]) -> str:
    metric = METRICS.get(name)
    if metric is None or metric.kind != kind:
        raise UndeclaredError(f"{name} is not declared as a {kind}")
    if unknown := {*by, *match} - {*metric.labels, *TARGET}:
        raise UndeclaredError(f"{name} has no label {sorted(unknown)[0]}")
    selected = ", ".join(_matcher(label, value) for label, value in sorted(match.items()))
    return full + (f"{{{selected}}}" if selected else "")


def _matcher(label: str, value: str) -> str:
    sign = {"~": "=~", "!": "!="}.get(value[:1])
    return f'{label}{sign}"{value[1:]}"' if sign else f'{label}="{value}"'


def _by(labels: tuple[str, ...]) -> str:
    return f" by ({', '.join(labels)})" if labels else ""

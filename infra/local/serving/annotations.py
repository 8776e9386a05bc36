"""Annotations of a Service and its template, with the values that Knative's webhook would accept.

The webhook lets misspelt autoscaling keys pass in silence; here every key of a Knative or local domain that is not
implemented is refused. Annotations of other domains are free text for other programs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from infra.local.annotations import refuse_unknown_annotations
from infra.local.fields import NOT_IMPLEMENTED, ManifestError, below
from infra.local.serving.model import Scale

AUTOSCALING = "autoscaling.knative.dev/"
PROGRESS_DEADLINE = "serving.knative.dev/progress-deadline"
LOCAL_PORT = "local.wakeswap.dev/port"

SERVICE_KEYS = frozenset({LOCAL_PORT, "serving.knative.dev/rollout-duration", "features.knative.dev/podspec-dryrun"})
"""Known on the Service itself; the last two steer a roll-out and an admission check that one machine lacks."""

_SCALE_NAMES = (
    "class",
    "metric",
    "target",
    "target-utilization-percentage",
    "min-scale",
    "max-scale",
    "initial-scale",
    "window",
    "scale-to-zero-pod-retention-period",
)
TEMPLATE_KEYS = frozenset({PROGRESS_DEADLINE, *(AUTOSCALING + name for name in _SCALE_NAMES)})

_HOUR = 3600.0
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": _HOUR}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def service_port(annotations: Mapping[str, str], path: str) -> int | None:
    """The public port that the local annotation asks for."""
    for key in annotations:
        if key.startswith(AUTOSCALING):
            raise ManifestError(below(path, key), "must be put under spec.template.metadata.annotations")
    refuse_unknown_annotations(annotations, SERVICE_KEYS, path)
    if LOCAL_PORT not in annotations:
        return None
    return _integer(annotations, LOCAL_PORT, path, 1, 65535)


def parse_scale(annotations: Mapping[str, str], path: str) -> Scale:
    """The autoscaling annotations of a template."""
    refuse_unknown_annotations(annotations, TEMPLATE_KEYS, path)
    _only(annotations, "class", path, "kpa.autoscaling.knative.dev")
    _only(annotations, "metric", path, "concurrency")
    scale = Scale(
        min_pods=_integer(annotations, AUTOSCALING + "min-scale", path, 0) or 0,
        max_pods=_integer(annotations, AUTOSCALING + "max-scale", path, 0) or 0,
        initial_pods=_integer(annotations, AUTOSCALING + "initial-scale", path, 0) or 0,
        window=_seconds(annotations, AUTOSCALING + "window", path, default=60.0, minimum=6.0, maximum=_HOUR),
        retention=_seconds(
            annotations,
            AUTOSCALING + "scale-to-zero-pod-retention-period",
            path,
            default=0.0,
            minimum=0.0,
            maximum=_HOUR,
        ),
        target=_number(annotations, AUTOSCALING + "target", path, 0.01, None),
        utilization=_number(annotations, AUTOSCALING + "target-utilization-percentage", path, 1.0, 100.0),
    )
    if scale.max_pods and scale.max_pods < scale.min_pods:
        raise ManifestError(below(path, AUTOSCALING + "max-scale"), f"must be at least min-scale {scale.min_pods}")
    return scale


def progress_deadline(annotations: Mapping[str, str], path: str) -> float:
    """Seconds a pod may take to become ready; Knative's default is ten minutes."""
    return _seconds(annotations, PROGRESS_DEADLINE, path, default=600.0, minimum=1.0, maximum=None)


def _only(annotations: Mapping[str, str], name: str, path: str, implemented: str) -> None:
    key = AUTOSCALING + name
    value = annotations.get(key, implemented)
    if value != implemented:
        raise ManifestError(below(path, key), f"{value!r} is {NOT_IMPLEMENTED}, only {implemented!r} is")


def _integer(
    annotations: Mapping[str, str], key: str, path: str, minimum: int, maximum: int | None = None
) -> int | None:
    text = annotations.get(key)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,9}", text):
        raise ManifestError(below(path, key), f"must be a whole number, not {text!r}")
    _bounded(int(text), minimum, maximum, below(path, key), text)
    return int(text)


def _number(annotations: Mapping[str, str], key: str, path: str, minimum: float, maximum: float | None) -> float | None:
    text = annotations.get(key)
    if text is None:
        return None
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise ManifestError(below(path, key), f"must be a number, not {text!r}")
    _bounded(float(text), minimum, maximum, below(path, key), text)
    return float(text)


def _seconds(
    annotations: Mapping[str, str], key: str, path: str, *, default: float, minimum: float, maximum: float | None
) -> float:
    """A Go duration (`90s`, `1m30s`) in whole seconds."""
    text = annotations.get(key)
    if text is None:
        return default
    parts = _PART.findall(text)
    if text != "0" and (not parts or "".join(number + unit for number, unit in parts) != text):
        raise ManifestError(below(path, key), f"must be a duration such as 90s or 1m30s, not {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds != int(seconds):
        raise ManifestError(below(path, key), f"must be whole seconds, not {text!r}")
    _bounded(seconds, minimum, maximum, below(path, key), text)
    return seconds


def _bounded(value: float, minimum: float, maximum: float | None, field: str, text: str) -> None:
    if value < minimum or (maximum is not None and value > maximum):
        limits = f"at least {minimum:g}" if maximum is None else f"between {minimum:g} and {maximum:g}"
        raise ManifestError(field, f"must be {limits}, not {text}")

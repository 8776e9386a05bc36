"""Durations as Go writes them (`90s`, `1h30m`), which Knative's annotations use. ISO 8601 is in infra.local."""

from __future__ import annotations

import math
import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")


def go_seconds(text: str) -> float:
    """Seconds; NaN for what is no duration, so that no comparison with it holds."""
    parts = _PART.findall(text)
    if text == "0":
        return 0.0
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return math.nan
    return sum(float(number) * _UNITS[unit] for number, unit in parts)

"""Amounts as Kubernetes writes them (`500m`, `8Gi`)."""

from __future__ import annotations

import math
import re

_UNITS = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_UNITS |= {f"{unit}i": 1024.0 ** (power + 1) for power, unit in enumerate("KMGTPE")}
_QUANTITY = re.compile(r"\+?(\d+(?:\.\d*)?|\.\d+)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?")


def amount(value: object) -> float:
    """In the base unit (cores, bytes); NaN for what is none, so that no comparison with it holds."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return math.nan
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        return math.nan
    number, unit, power = match.groups()
    return float(number) * (10.0 ** int(power) if power else _UNITS[unit or ""])

"""Checks of a tenant's plain data: every field named, typed and in range, or the process does not start.

Knows the error tree and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from shared.errors import ConfigError, JsonValue
from shared.tenancy.licences import ALLOWED
from shared.tenancy.tenant import Policy, Webhook

RANGES: Mapping[str, tuple[float, float]] = {
    "nsfw_threshold": (0.0, 1.0),
    "max_pixels": (1, 200_000_000),
    "max_bytes": (1, 1_000_000_000),
    "link_seconds": (60, 604_800),
    "max_output": (240, 16_384),
}
"""Both ends allowed; what the numbers mean stands at the fields of Policy."""
WORDS: Mapping[str, tuple[str, ...]] = {"licences": tuple(ALLOWED), "wake": ("ahead", "after-moderation", "none")}
"""The words that a field of Policy may be."""


def policy(where: str, table: Mapping[str, JsonValue]) -> Policy:
    """A policy from its JSON object. Raises ConfigError whose context names the field."""
    _no_more(where, table, {entry.name for entry in fields(Policy)})
    numbers = set(table) & set(RANGES) - {"nsfw_threshold"}
    whole = {name: int(_number(where, name, table[name], whole=True)) for name in numbers}
    threshold = _number(where, "nsfw_threshold", table.get("nsfw_threshold", Policy.nsfw_threshold), whole=False)
    licences, wake = (_one_of(where, name, table.get(name, getattr(Policy, name))) for name in WORDS)
    return Policy(nsfw_threshold=threshold, licences=licences, wake=wake, **whole)


def webhook(where: str, table: Mapping[str, JsonValue]) -> Webhook:
    """A webhook without its secret, which is a setting of its own. Raises ConfigError."""
    _no_more(where, table, {"url", "allow_local"})
    url, allow_local = table.get("url", ""), table.get("allow_local", False)
    if not isinstance(url, str):
        raise ConfigError("Must be a text.", context={"field": f"{where}.url"})
    if not isinstance(allow_local, bool):
        raise ConfigError("Must be true or false.", context={"field": f"{where}.allow_local"})
    if url and not url.startswith(("https://", "http://") if allow_local else "https://"):
        raise ConfigError("Must be an https address.", context={"field": f"{where}.url"})
    return Webhook(url=url, allow_local=allow_local)


def _one_of(where: str, name: str, value: JsonValue) -> str:
    if not isinstance(value, str) or value not in WORDS[name]:
        raise ConfigError(f"Must be one of {', '.join(WORDS[name])}.", context={"field": f"{where}.{name}"})
    return value


def _number(where: str, name: str, value: JsonValue, *, whole: bool) -> float:
    low, high = RANGES[name]
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise ConfigError(f"Must be a {'whole ' if whole else ''}number.", context={"field": f"{where}.{name}"})
    if not low <= value <= high:
        raise ConfigError(f"Must be from {low} to {high}.", context={"field": f"{where}.{name}"})
    return float(value)


def _no_more(where: str, table: Mapping[str, JsonValue], known: set[str]) -> None:
    if unknown := sorted(set(table) - known):
        raise ConfigError("Unknown field.", context={"field": f"{where}.{unknown[0]}"})

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
    "max_concurrent": (1, 1000),
    "max_batch": (1, 1000),
    "jobs_per_minute": (1, 100_000),
    "jobs_per_day": (1, 10_000_000),
    "keep_inputs_hours": (1, 24 * 3660),
    "keep_results_hours": (1, 24 * 3660),
}
"""Both ends allowed; what the numbers mean stands at the fields of Policy."""
WORDS: Mapping[str, tuple[str, ...]] = {
    "licences": tuple(ALLOWED),
    "wake": ("ahead", "after-moderation", "none"),
    "priority": ("interactive", "batch"),
    "nsfw_action": ("reject", "review", "blur"),
    "words_action": ("reject", "review", "blur"),
    "isolation": ("shared", "dedicated"),
}
"""The words that a field of Policy may be."""
LISTS = ("stages", "swappers", "enhancers", "banned_words", "fetch_hosts")


def policy(where: str, table: Mapping[str, JsonValue]) -> Policy:
    """A policy from its JSON object. Raises ConfigError whose context names the field."""
    _no_more(where, table, {entry.name for entry in fields(Policy)})
    numbers = set(table) & set(RANGES) - {"nsfw_threshold"}
    whole = {name: int(_number(where, name, table[name], whole=True)) for name in numbers}
    threshold = _number(where, "nsfw_threshold", table.get("nsfw_threshold", Policy.nsfw_threshold), whole=False)
    words = {name: _one_of(where, name, table[name]) for name in set(table) & set(WORDS)}
    lists = {name: _texts(where, name, table[name]) for name in set(table) & set(LISTS)}
    tag = table.get("model_tag", "")
    if not isinstance(tag, str):
        raise ConfigError("Must be a text.", context={"field": f"{where}.model_tag"})
    return Policy(nsfw_threshold=threshold, model_tag=tag, **words, **lists, **whole)  # type: ignore[arg-type]


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


def _texts(where: str, name: str, value: JsonValue) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(entry, str) and entry for entry in value):
        raise ConfigError("Must be a list of texts.", context={"field": f"{where}.{name}"})
    return tuple(str(entry) for entry in value)


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

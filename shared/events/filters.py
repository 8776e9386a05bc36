"""Filters of a Trigger, as its manifest writes them: `exact` over attributes, joined by `all`, `any` and `not`.

They decide over an event that is handed over inside a process as a broker would that carried it. Knows the Event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shared.errors import ConfigError, JsonValue
from shared.events.event import Event

Filter = Callable[[Mapping[str, str]], bool]
"""Whether an event with these attributes passes; one that is absent equals nothing."""


def attributes(event: Event) -> dict[str, str]:
    """What filters look at: the context attributes and the extensions, as texts."""
    own = {"id": event.id, "source": event.source, "type": event.type, "subject": event.subject}
    return {**{name: str(value) for name, value in event.extensions.items()}, **own}


def every(where: str, entries: JsonValue) -> Filter:
    """A Trigger's `spec.filters`: all of them must pass. Raises ConfigError that names the place."""
    parts = _list(where, entries)
    return lambda event: all(part(event) for part in parts)


def _list(where: str, entries: JsonValue) -> list[Filter]:
    if not isinstance(entries, list) or not entries:
        raise ConfigError("Must be a list of filters.", context={"field": where})
    return [_one(f"{where}[{index}]", entry) for index, entry in enumerate(entries)]


def _one(where: str, entry: JsonValue) -> Filter:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise ConfigError("Must have one dialect.", context={"field": where})
    ((dialect, value),) = entry.items()
    where = f"{where}.{dialect}"
    match dialect:
        case "exact":
            return _exact(where, value)
        case "all":
            return every(where, value)
        case "any":
            parts = _list(where, value)
            return lambda event: any(part(event) for part in parts)
        case "not":
            inner = _one(where, value)
            return lambda event: not inner(event)
    raise ConfigError("Is none of exact, all, any and not.", context={"field": where})


def _exact(where: str, value: JsonValue) -> Filter:
    if not isinstance(value, dict) or not value:
        raise ConfigError("Must name attributes.", context={"field": where})
    wanted = {name: str(text) for name, text in value.items()}
    return lambda event: all(event.get(name) == text for name, text in wanted.items())

"""The part of YAML 1.2 that says the same as JSON, read strictly: one document, no tags, no anchors, no name twice.

A word without quotes is null, true, false or a number as JSON writes them, and a text otherwise: `no` and
`2030-01-31` are texts. Built from libyaml's events, which are bounded in depth; the only importer of yaml here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn, cast

from shared.errors import ConfigError, JsonValue

if TYPE_CHECKING:
    from yaml import Event

MAX_DEPTH = 8
"""Lists and objects in each other; a tenant's file has three."""
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,2})?")
_WORDS: dict[str, JsonValue] = {"": None, "~": None, "null": None, "true": True, "false": False}


def loads(text: str) -> JsonValue:
    """Raises ConfigError, which says in which line, and in `field` of its context at which name where it can."""
    import yaml  # 20 ms that an installation without tenants' files does not pay

    try:
        return _Reader(yaml.parse(text, Loader=yaml.CSafeLoader)).document()
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ConfigError(f"Not valid YAML: {line}{error.problem}.", context={"field": "file"}) from None
    except yaml.YAMLError:
        raise ConfigError("Not valid YAML: a character that may not stand in it.", context={"field": "file"}) from None


class _Reader:
    """One document out of the events; `_path` is the name of the value being read."""

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._path: list[str] = []

    def document(self) -> JsonValue:
        from yaml import DocumentEndEvent, DocumentStartEvent, StreamEndEvent, StreamStartEvent

        value: JsonValue = None
        documents = 0
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse("Holds more than one document", event)
            elif not isinstance(event, StreamStartEvent | StreamEndEvent | DocumentEndEvent):
                value = self._value(event)
        return value

    def _value(self, event: Event) -> JsonValue:
        from yaml import MappingStartEvent, ScalarEvent, SequenceStartEvent

        if getattr(event, "anchor", None) is not None:
            self._refuse("Anchors and aliases are not read", event)
        if getattr(event, "tag", None) is not None:
            self._refuse("Tags are not read", event)
        if len(self._path) > MAX_DEPTH:
            self._refuse(f"Nested deeper than {MAX_DEPTH}", event)
        if isinstance(event, MappingStartEvent):
            return self._mapping()
        if isinstance(event, SequenceStartEvent):
            return self._sequence()
        assert isinstance(event, ScalarEvent)
        return _plain(event.value) if event.implicit[0] else str(event.value)

    def _mapping(self) -> JsonValue:
        from yaml import MappingEndEvent, ScalarEvent

        found: dict[str, JsonValue] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                self._refuse("A name must be a text", event)
            with_dot = "." if self._path else ""
            self._path.append(f"{with_dot}{event.value[:64]}")
            if event.value in found:
                self._refuse("Stands twice", event)
            found[event.value] = self._value(next(self._events))
            self._path.pop()
        return found

    def _sequence(self) -> JsonValue:
        from yaml import SequenceEndEvent

        found: list[JsonValue] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            self._path.append(f"[{len(found)}]")
            found.append(self._value(event))
            self._path.pop()
        return found

    def _refuse(self, detail: str, event: Event) -> NoReturn:
        line = event.start_mark.line + 1 if event.start_mark else 0
        raise ConfigError(f"{detail} (line {line}).", context={"field": "".join(self._path) or "file"})


def _plain(text: str) -> JsonValue:
    """What an unquoted word means."""
    if text in _WORDS:
        return _WORDS[text]
    return cast(JsonValue, json.loads(text)) if _NUMBER.fullmatch(text) else text

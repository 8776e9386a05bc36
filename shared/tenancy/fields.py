"""What a field of a tenant's file may hold, declared once: reading and JSON Schema both follow it.

A record is a frozen dataclass whose fields are `Annotated` with one of the kinds below; a field without one is not
in the file. Pure; knows the error tree.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import datetime
from functools import cache
from typing import Annotated, Any, NoReturn, Protocol, TypeVar, cast, get_origin, get_type_hints

from shared.errors import ConfigError, JsonValue

T = TypeVar("T")
Schema = dict[str, JsonValue]
_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"


class Kind(Protocol):
    def read(self, where: str, value: JsonValue) -> object:
        """The value as kept. Raises ConfigError whose context names `where`."""
        ...

    def schema(self) -> Schema:
        """JSON Schema (2020-12) of what `read` takes."""
        ...


@dataclass(frozen=True)
class Whole:
    """A whole number, both ends allowed."""

    low: int
    high: int

    def read(self, where: str, value: JsonValue) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            refuse(where, "Must be a whole number.")
        if not self.low <= value <= self.high:
            refuse(where, f"Must be from {self.low} to {self.high}.")
        return value

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Real:
    """A number, both ends allowed."""

    low: float
    high: float

    def read(self, where: str, value: JsonValue) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse(where, "Must be a number.")
        if not self.low <= value <= self.high:
            refuse(where, f"Must be from {self.low} to {self.high}.")
        return float(value)

    def schema(self) -> Schema:
        return {"type": "number", "minimum": self.low, "maximum": self.high}


@dataclass(frozen=True)
class Flag:
    def read(self, where: str, value: JsonValue) -> bool:
        if not isinstance(value, bool):
            refuse(where, "Must be true or false.")
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Word:
    """One of some words."""

    words: tuple[str, ...]

    def read(self, where: str, value: JsonValue) -> str:
        if not isinstance(value, str) or value not in self.words:
            refuse(where, f"Must be one of {', '.join(self.words)}.")
        return value

    def schema(self) -> Schema:
        return {"enum": [*self.words]}


@dataclass(frozen=True)
class Text:
    """A text that a pattern describes from its first to its last character, in Python and in ECMA 262 alike."""

    pattern: str
    meaning: str
    """Ends the sentence `Must be ...`."""

    def read(self, where: str, value: JsonValue) -> str:
        if not isinstance(value, str) or not re.fullmatch(self.pattern, value):
            refuse(where, f"Must be {self.meaning}.")
        return value

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}


@dataclass(frozen=True)
class Time:
    """A moment in UTC to the second, as RFC 3339 writes it; or nothing, where that is allowed."""

    optional: bool = False

    def read(self, where: str, value: JsonValue) -> str:
        if self.optional and value == "":
            return ""
        if not isinstance(value, str) or not _is_time(value):
            refuse(where, "Must be a time such as 2030-01-31T12:00:00Z.")
        return value

    def schema(self) -> Schema:
        form: Schema = {"type": "string", "format": "date-time", "pattern": f"^{_TIME}$"}
        return {"anyOf": [form, {"const": ""}]} if self.optional else form


@dataclass(frozen=True)
class Several:
    """A list, each entry once."""

    each: Text | Word
    most: int
    least: int = 0

    def read(self, where: str, value: JsonValue) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            refuse(where, "Must be a list of texts.")
        found = tuple(self.each.read(f"{where}[{index}]", entry) for index, entry in enumerate(value))
        if not self.least <= len(found) <= self.most or len(found) != len(set(found)):
            refuse(where, f"Must have {self.least} to {self.most} entries, each once.")
        return found

    def schema(self) -> Schema:
        return {
            "type": "array",
            "items": self.each.schema(),
            "minItems": self.least,
            "maxItems": self.most,
            "uniqueItems": True,
        }


@cache
def _kinds(record: Hashable) -> Mapping[str, Kind]:
    hints = get_type_hints(record, include_extras=True)
    annotated = {name: hint.__metadata__[0] for name, hint in hints.items() if get_origin(hint) is Annotated}
    return {item.name: annotated[item.name] for item in fields(cast(Any, record)) if item.name in annotated}


def kinds(record: type[Any]) -> Mapping[str, Kind]:
    """The kind of every field that is in a file, by name, in the order of the record."""
    return _kinds(cast(Hashable, record))


def _is_time(text: str) -> bool:
    try:
        return bool(re.fullmatch(_TIME, text) and datetime.fromisoformat(text))
    except ValueError:
        return False


def is_required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


def read(record: type[T], where: str, value: JsonValue) -> T:
    """A record from its object; what is left out keeps its default. Raises ConfigError naming the field."""
    known, table = kinds(record), table_of(where, value)
    no_more(where, table, known)
    for item in fields(record):  # type: ignore[arg-type]
        if item.name in known and item.name not in table and is_required(item):
            refuse(f"{where}.{item.name}", "Is missing.")
    return record(**{name: known[name].read(f"{where}.{name}", entry) for name, entry in table.items()})


def table_of(where: str, value: JsonValue) -> dict[str, JsonValue]:
    """Raises ConfigError for what is no object."""
    if not isinstance(value, dict):
        refuse(where, "Must be an object.")
    return value


def no_more(where: str, table: Mapping[str, JsonValue], known: Mapping[str, object]) -> None:
    """Raises ConfigError for a field that is not known."""
    if unknown := sorted(set(table) - set(known)):
        refuse(f"{where}.{unknown[0]}" if where else unknown[0], "Unknown field.")


def refuse(where: str, detail: str) -> NoReturn:
    raise ConfigError(detail, context={"field": where})

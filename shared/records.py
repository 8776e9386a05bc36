"""JSON and frozen dataclasses, both ways, strictly.

A record is a frozen dataclass of str, int, float, bool, other records, `X | None`, `tuple[X, ...]`, `tuple[X, Y]` and
`dict[str, JsonValue]` (any JSON object). Knows the standard library and the JsonValue type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from shared.errors import JsonValue

T = TypeVar("T")

MAX_DEPTH = 64
"""Arrays and objects in each other; deeper text is refused, since whatever walks it would run out of stack."""


class RecordError(ValueError):
    """`path` names the value, `problem` says what is wrong with it; callers turn it into their own error."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the value'} {problem}")
        self.path = path
        self.problem = problem


def loads(text: str | bytes) -> JsonValue:
    """The value of a JSON text (RFC 8259; bytes are UTF-8). Raises ValueError.

    Refuses what the standard parser lets through: NaN and infinities, also as 1e999, and a name given twice in one
    object, which two readers would read differently.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError(f"nested deeper than {MAX_DEPTH}") from None
    _check_depth(value)
    return cast(JsonValue, value)


def dumps(value: object) -> bytes:
    """Compact JSON with sorted names: equal values give equal bytes. Raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def read(kind: type[T], value: JsonValue, path: str = "") -> T:
    """`value` as the record `kind`; unknown names are ignored. Raises RecordError naming the field by its path."""
    if not isinstance(value, dict):
        raise RecordError(path, "is not an object")
    hints = _hints(cast(Any, kind))
    given = {}
    for item in fields(kind):  # type: ignore[arg-type]
        where = f"{path}.{item.name}" if path else item.name
        if item.name in value:
            given[item.name] = _read(hints[item.name], value[item.name], where)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise RecordError(where, "is missing")
    return kind(**given)


def write(record: object) -> JsonValue:
    """The record as JSON values, tuples as arrays, every field written."""
    if is_dataclass(record):
        return {item.name: write(getattr(record, item.name)) for item in fields(record)}
    if isinstance(record, tuple | list):
        return [write(item) for item in record]
    if isinstance(record, Mapping):
        return {str(name): write(item) for name, item in record.items()}
    if record is None or isinstance(record, str | int | float | bool):
        return record
    raise TypeError(f"{type(record).__name__} has no place in a record")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: JsonValue, path: str) -> object:
    if hint in _SCALARS:
        return _SCALARS[hint](value, path)
    if is_dataclass(hint):
        return read(cast(type[object], hint), value, path)
    origin = get_origin(hint)
    if origin is tuple:
        return _array(get_args(hint), value, path)
    if origin is dict:
        if not isinstance(value, dict):
            raise RecordError(path, "is not an object")
        return value
    if origin in (Union, UnionType):
        return _optional(get_args(hint), value, path)
    raise TypeError(f"{path}: {hint} has no place in a record")


def _array(hints: tuple[Any, ...], value: JsonValue, path: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise RecordError(path, "is not an array")
    each = hints[:1] * len(value) if hints[-1] is Ellipsis else hints
    if len(each) != len(value):
        raise RecordError(path, f"has not {len(each)} entries")
    return tuple(
        _read(hint, item, f"{path}[{index}]") for index, (hint, item) in enumerate(zip(each, value, strict=True))
    )


def _optional(hints: tuple[Any, ...], value: JsonValue, path: str) -> object:
    kinds = [hint for hint in hints if hint is not NoneType]
    if len(kinds) != 1:
        raise TypeError(f"{path}: only X | None has a place in a record")
    return None if value is None else _read(kinds[0], value, path)


def _string(value: JsonValue, path: str) -> str:
    if not isinstance(value, str):
        raise RecordError(path, "is not a string")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise RecordError(path, "is not valid Unicode")
    return value


def _integer(value: JsonValue, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError(path, "is not a whole number")
    return value


def _number(value: JsonValue, path: str) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RecordError(path, "is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise RecordError(path, "is not a finite number")
    return number


def _boolean(value: JsonValue, path: str) -> bool:
    if not isinstance(value, bool):
        raise RecordError(path, "is neither true nor false")
    return value


_SCALARS: Mapping[type, Callable[[JsonValue, str], object]] = {
    str: _string,
    int: _integer,
    float: _number,
    bool: _boolean,
}


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return names


def _check_depth(value: object) -> None:
    level, depth = [value], 0
    while level := [inner for item in level if isinstance(item, list | dict) for inner in _inside(item)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH}")


def _inside(item: list[object] | dict[str, object]) -> list[object]:
    return list(item.values()) if isinstance(item, dict) else item

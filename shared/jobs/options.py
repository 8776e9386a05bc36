"""Options as a caller writes them: every field checked, no field unknown.

Pure. Knows the payloads and the error tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import NoReturn, cast

from shared.errors import InvalidOptionError, JsonValue
from shared.events.payloads import Options

FORMATS = ("same", "jpeg", "png", "webp", "avif", "tiff", "bmp", "gif")
MAX_INDEX = 999
"""Largest face index; no picture in the size limits holds more faces of 18 pixels that anyone could count."""

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "faces": ("many", "one"),
    "source_face": ("one", "largest"),
    "eyes": ("target", "source"),
    "format": FORMATS,
}
_RANGES: Mapping[str, tuple[float, float]] = {"shape": (0.0, 1.0), "min_face": (18, 4096), "quality": (1, 100)}
_INDEXED = ("faces", "source_face")
_CATALOGUE_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


def parse(value: JsonValue) -> Options:
    """Options from a JSON object; what is left out keeps its default.

    Raises InvalidOptionError whose `context["field"]` is the field's name (`options` when it is no object at all).
    """
    if not isinstance(value, dict):
        _refuse("options", "Options are a JSON object.")
    if unknown := sorted(set(value) - {entry.name for entry in fields(Options)}):
        _refuse(unknown[0][:64], "There is no such option.")
    return Options(**{name: _checked(name, entry) for name, entry in value.items()})  # type: ignore[arg-type]


def _checked(name: str, value: JsonValue) -> str | int | float:
    if name in _RANGES:
        return _number(name, value)
    if name in _INDEXED and _is_index(value):
        return str(int(cast(int, value)))
    allowed = _CATALOGUE_NAME.fullmatch if name == "swapper" else _CHOICES[name].__contains__
    if not isinstance(value, str) or not allowed(value):
        index = f" or an index from 0 to {MAX_INDEX}" if name in _INDEXED else ""
        _refuse(name, f"Must be one of {', '.join(_CHOICES.get(name, ('the swappers',)))}{index}.")
    return value


def _number(name: str, value: JsonValue) -> int | float:
    low, high = _RANGES[name]
    whole = name != "shape"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not low <= value <= high:
        _refuse(name, f"Must be a {'whole ' if whole else ''}number from {low:g} to {high:g}.")
    return value if whole else float(value)


def _is_index(value: JsonValue) -> bool:
    if isinstance(value, str):
        return bool(re.fullmatch(r"[0-9]{1,3}", value))
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INDEX


def _refuse(name: str, detail: str) -> NoReturn:
    raise InvalidOptionError(detail, context={"field": name})

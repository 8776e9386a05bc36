"""Trigger filters: which events a Trigger sees. Pure; knows attributes as texts and the dialects of the manifests.

`filter.attributes` is the older form, `filters` the newer one; where `filters` has entries, `filter` is ignored,
as in Knative. A missing attribute never matches.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from infra.local.fields import ManifestError, as_mapping, below, list_at, mapping_at, refuse_unknown, text_mapping_at

Attributes = Mapping[str, str]

_NAME = re.compile(r"[a-z][a-z0-9]*")
_TESTS: dict[str, Callable[[str, str], bool]] = {
    "exact": str.__eq__,
    "prefix": str.startswith,
    "suffix": str.endswith,
}
_DIALECTS = ("exact", "prefix", "suffix", "all", "any", "not")


class Filter(Protocol):
    """Decides over one event by its attributes."""

    def matches(self, attributes: Attributes) -> bool:
        """True where an event with these attributes passes."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Every named attribute is present and passes the dialect's test against its value."""

    dialect: str
    values: tuple[tuple[str, str], ...]

    def matches(self, attributes: Attributes) -> bool:
        """Exact, prefix or suffix on all pairs."""
        test = _TESTS[self.dialect]
        return all(name in attributes and test(attributes[name], value) for name, value in self.values)


@dataclass(frozen=True, slots=True)
class Present:
    """The attribute is present with any value (an empty value in `filter.attributes`)."""

    name: str

    def matches(self, attributes: Attributes) -> bool:
        """True where the attribute exists."""
        return self.name in attributes


@dataclass(frozen=True, slots=True)
class All:
    """Every inner filter matches; none at all matches everything."""

    inner: tuple[Filter, ...]

    def matches(self, attributes: Attributes) -> bool:
        """Logical and."""
        return all(each.matches(attributes) for each in self.inner)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one inner filter matches."""

    inner: tuple[Filter, ...]

    def matches(self, attributes: Attributes) -> bool:
        """Logical or."""
        return any(each.matches(attributes) for each in self.inner)


@dataclass(frozen=True, slots=True)
class Not:
    """The inner filter does not match (so a missing attribute inside makes it match)."""

    inner: Filter

    def matches(self, attributes: Attributes) -> bool:
        """Logical not."""
        return not self.inner.matches(attributes)


def parse_filter(spec: Mapping[str, object], path: str) -> Filter:
    """The filter of a Trigger's spec at `path`; ManifestError for unknown fields, names and dialects."""
    older = _parse_attributes(mapping_at(spec, "filter", path), below(path, "filter"))
    newer = _parse_list(list_at(spec, "filters", path), below(path, "filters"))
    return All(newer) if newer else older


def _parse_attributes(older: Mapping[str, object], path: str) -> Filter:
    refuse_unknown(older, {"attributes"}, path)
    pairs = text_mapping_at(older, "attributes", path)
    _check_names(pairs, below(path, "attributes"))
    exact = tuple((name, value) for name, value in pairs.items() if value)
    return All((Text("exact", exact), *(Present(name) for name, value in pairs.items() if not value)))


def _parse_list(entries: list[object], path: str) -> tuple[Filter, ...]:
    return tuple(_parse_entry(entry, f"{path}[{index}]") for index, entry in enumerate(entries))


def _parse_entry(value: object, path: str) -> Filter:
    entry = as_mapping(value, path)
    refuse_unknown(entry, _DIALECTS, path)
    if len(entry) != 1:
        raise ManifestError(path, f"must have exactly one dialect of {', '.join(_DIALECTS)}")
    dialect = next(iter(entry))
    if dialect in _TESTS:
        return _parse_text(entry, dialect, path)
    if dialect == "not":
        return Not(_parse_entry(entry["not"], below(path, "not")))
    inner = _parse_list(list_at(entry, dialect, path), below(path, dialect))
    if not inner:
        raise ManifestError(below(path, dialect), "must not be empty")
    return All(inner) if dialect == "all" else AnyOf(inner)


def _parse_text(entry: Mapping[str, object], dialect: str, path: str) -> Filter:
    pairs = text_mapping_at(entry, dialect, path)
    where = below(path, dialect)
    if not pairs:
        raise ManifestError(where, "must not be empty")
    _check_names(pairs, where)
    for name, value in pairs.items():
        if not value:
            raise ManifestError(below(where, name), "must not be empty")
    return Text(dialect, tuple(pairs.items()))


def _check_names(pairs: Mapping[str, str], path: str) -> None:
    for name in pairs:
        if not _NAME.fullmatch(name):
            raise ManifestError(below(path, name), "attribute names must match ^[a-z][a-z0-9]*$")

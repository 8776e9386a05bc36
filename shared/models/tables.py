"""Reading TOML tables strictly: every key has a type, and a key nobody asked for is refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from shared.errors import ConfigError
from shared.models import sources
from shared.models.spec import FileSpec

if TYPE_CHECKING:
    from shared.vision.protocols import Parameter

C = TypeVar("C", bound=str)

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class Table:
    """One TOML table and its place in the file (`catalog.toml.models.centerface`) for error texts."""

    def __init__(self, where: str, values: Mapping[str, object]) -> None:
        self.where = where
        self._values = dict(values)
        self._read: set[str] = set()

    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def has(self, key: str) -> bool:
        return key in self._values

    def done(self) -> None:
        """Raises ConfigError for the first key that was not read."""
        for key in self._values:
            if key not in self._read:
                raise ConfigError(f"{self.where}: unknown key {key!r}.")

    def value(self, key: str) -> object:
        self._read.add(key)
        if key not in self._values:
            raise ConfigError(f"{self.where}: {key!r} is missing.")
        return self._values[key]

    def text(self, key: str, default: str | None = None) -> str:
        if default is not None and not self.has(key):
            return default
        value = self.value(key)
        if not isinstance(value, str) or not value:
            raise self.error(key, "a text")
        return value

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        if default is not None and not self.has(key):
            return default
        value = self.value(key)
        if not isinstance(value, list):
            raise self.error(key, "a list of texts")
        found = tuple(item for item in value if isinstance(item, str) and item)
        if len(found) != len(value):
            raise self.error(key, "a list of texts")
        return found

    def size(self, key: str) -> int:
        """0 when it is not there."""
        if not self.has(key):
            return 0
        value = self.value(key)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise self.error(key, "a positive number of bytes")
        return value

    def matching(self, key: str, pattern: re.Pattern[str], what: str, default: str | None = None) -> str:
        value = self.text(key, default)
        if value and not pattern.fullmatch(value):
            raise self.error(key, what)
        return value

    def digest(self, key: str, default: str | None = None) -> str:
        return self.matching(key, _DIGEST, "64 lower-case hex digits", default)

    def entry_point(self, key: str, default: str | None = None) -> str:
        return self.matching(key, _ENTRY_POINT, 'of the form "module:name"', default)

    def choice(self, key: str, allowed: tuple[C, ...]) -> C:
        value = self.text(key)
        for option in allowed:
            if option == value:
                return option
        raise self.error(key, "one of " + ", ".join(allowed))

    def table(self, key: str) -> Table:
        value = self.value(key) if self.has(key) else {}
        if not isinstance(value, dict):
            raise self.error(key, "a table")
        return Table(f"{self.where}.{key}", value)

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """The named tables below `key`."""
        group = self.table(key)
        for name in group.names():
            yield name, group.named(name)

    def named(self, name: str) -> Table:
        """The table `name`, which must be a name that can stand in a path."""
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{self.where}: {name!r} is not a valid name.")
        return self.table(name)

    def error(self, key: str, expected: str) -> ConfigError:
        return ConfigError(f"{self.where}: {key!r} must be {expected}.")


def file_specs(table: Table) -> tuple[FileSpec, ...]:
    """The `files` of a model, which may have none."""
    files = tuple(_file(part, row) for part, row in table.tables("files"))
    names = [file.name for file in files]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{table.where}: two files are called {name!r}.")
    fetched = {file.part for file in files if not file.origin}
    for file in files:
        if file.origin and file.origin not in fetched:
            raise ConfigError(f"{table.where}: {file.part!r} is made from {file.origin!r}, which is no fetched part.")
    return files


def required_files(table: Table) -> tuple[FileSpec, ...]:
    files = file_specs(table)
    if not files:
        raise ConfigError(f"{table.where}: 'files' is missing.")
    return files


def parameters(table: Table) -> dict[str, Parameter]:
    group = table.table("parameters")
    found: dict[str, Parameter] = {}
    for name in group.names():
        value = group.value(name)
        if not isinstance(value, str | int | float | bool):
            raise group.error(name, "a text, a number or a truth value")
        found[name] = value
    return found


def _file(part: str, row: Table) -> FileSpec:
    spec = FileSpec(
        part=part,
        name=row.matching("name", _NAME, "a plain file name"),
        size=row.size("size"),
        sha256=row.digest("sha256", ""),
        sources=row.texts("sources", ()),
        source_sha256=row.digest("source_sha256", ""),
        source_size=row.size("source_size"),
        convert=row.entry_point("convert", ""),
        origin=row.text("from", ""),
    )
    row.done()
    if (spec.source_sha256 or spec.source_size or spec.origin) and not spec.convert:
        raise ConfigError(f"{row.where}: 'source_sha256', 'source_size' and 'from' need 'convert'.")
    if bool(spec.sources) == bool(spec.origin) or (spec.origin and (spec.source_sha256 or spec.source_size)):
        raise ConfigError(f"{row.where}: a file has either 'sources' or 'from', another part of the same model.")
    for source in spec.sources:
        try:
            sources.parse(source)
        except ConfigError as error:
            raise ConfigError(f"{row.where}: 'sources': {error.detail}") from error
    return spec

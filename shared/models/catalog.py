"""The catalogue: the tables of `catalog/*.toml` as validated frozen specs. A wrong key is a ConfigError by name.

Knows the grammar of the tables, nothing of networks, caches or adapters.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from shared.errors import ConfigError, ModelNotFoundError
from shared.models.spec import Commercial, FileSet, ModelSpec
from shared.models.tables import Table, file_specs, parameters, required_files

T = TypeVar("T")

DEFAULT = Path(__file__).with_name("catalog")
OPTIONAL = "?"


@dataclass(frozen=True)
class Catalog:
    models: Mapping[str, ModelSpec]
    samples: Mapping[str, FileSet]
    roles: Mapping[str, str]
    """Per role the name of its default model."""
    stages: Mapping[str, tuple[str, ...]]
    """Per stage the roles or models it needs before it is ready; a role with `?` only where one is chosen."""
    fetched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same for what it loads only when a job needs it, and must have at hand."""
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Per stage the roles whose models it loads when a job asks for them; fetched then, or ahead where a setting says
    so."""

    def choosing(self, choices: Mapping[str, str]) -> Catalog:
        """The same catalogue with other models for some roles. Raises ConfigError for a model without that role."""
        for role, name in choices.items():
            if name not in self.models or self.models[name].role != role:
                raise ConfigError(f"The catalogue has no {role} that is called {name!r}.")
        return replace(self, roles={**self.roles, **choices})

    def without(self, roles: Collection[str]) -> Catalog:
        """The same catalogue with no model chosen for these roles, which the stages must do without."""
        return replace(self, roles={role: name for role, name in self.roles.items() if role not in roles})

    def model(self, name: str) -> ModelSpec:
        """The model called `name`, or the model of the role called `name`. Raises ModelNotFoundError."""
        chosen = self.roles.get(name, name)
        if chosen not in self.models:
            known = ", ".join(sorted(self.models))
            raise ModelNotFoundError(f"No model is called {name!r}; the catalogue has {known}.")
        return self.models[chosen]

    def needed_by(self, stage: str) -> tuple[ModelSpec, ...]:
        """Models of a stage and those that they use; none for a stage that the catalogue does not list."""
        found: dict[str, ModelSpec] = {}
        for name in (*self.stages.get(stage, ()), *self.fetched.get(stage, ())):
            if name.removesuffix(OPTIONAL) in self.roles or not name.endswith(OPTIONAL):
                found.update({spec.name: spec for spec in self.closure(name.removesuffix(OPTIONAL))})
        return tuple(found.values())

    def closure(self, name: str) -> tuple[ModelSpec, ...]:
        """The model called `name` after everything it uses. Raises ModelNotFoundError, ConfigError for a circle."""
        return tuple(self._closure(name, ()))

    def commercial(self, name: str) -> Commercial:
        """Whether the model called `name`, with everything it uses, may be used commercially: the worst of all."""
        found = {spec.commercial for spec in self.closure(name)}
        return "no" if "no" in found else "unknown" if "unknown" in found else "yes"

    def _closure(self, name: str, above: tuple[str, ...]) -> Iterator[ModelSpec]:
        spec = self.model(name)
        if spec.name in above:
            raise ConfigError(f"The models {', '.join(above)} use each other in a circle.")
        for used in spec.uses.values():
            yield from self._closure(used, (*above, spec.name))
        yield spec


@cache
def default() -> Catalog:
    """The product's own catalogue, read once."""
    return load(DEFAULT)


@cache
def extended(folder: str) -> Catalog:
    """The product's catalogue with the tables of another folder beside it, read once. Raises ConfigError."""
    if not Path(folder).is_dir():
        raise ConfigError(f"There is no folder {folder} with catalogue tables.")
    return load(DEFAULT, Path(folder))


def load(place: Path, *more: Path) -> Catalog:
    """One TOML file, or all of a folder read as one, and of more. Raises ConfigError, naming file, table and key."""
    paths = [path for one in (place, *more) for path in (sorted(one.glob("*.toml")) if one.is_dir() else [one])]
    tables = [_document(path) for path in paths]
    models = _joined(tables, "models", _model)
    samples = _joined(tables, "samples", _sample)
    roles = _joined(tables, "roles", Table.text)
    stages, fetched, asked = (_joined(tables, key, Table.texts) for key in ("stages", "fetched", "asked"))
    for table in tables:
        table.done()
    catalog = Catalog(models, samples, {}, stages, fetched, asked).choosing(roles)
    for name in (*stages, *fetched):
        _checked(f"{place.name}.stages.{name}", catalog.needed_by, name)
    for name in models:
        _checked(f"{place.name}.models.{name}.uses", catalog.closure, name)
    return catalog


def _document(path: Path) -> Table:
    try:
        return Table(path.name, tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path.name}: {error}") from error


def _joined(tables: Sequence[Table], key: str, read: Callable[[Table, str], T]) -> dict[str, T]:
    """What `read` makes of every name below `key`, over all files."""
    found: dict[str, T] = {}
    for table in tables:
        group = table.table(key)
        for name in group.names():
            if name in found:
                raise ConfigError(f"{group.where}: {name!r} stands in another file too.")
            found[name] = read(group, name)
    return found


def _model(group: Table, name: str) -> ModelSpec:
    table = group.named(name)
    spec = ModelSpec(
        name=name,
        licence=table.text("licence"),
        files=file_specs(table),
        role=table.text("role"),
        adapter=table.entry_point("adapter"),
        vendor=table.text("vendor"),
        commercial=table.choice("commercial", ("yes", "no", "unknown")),
        parameters=parameters(table),
        uses={part: group.text(part) for group in [table.table("uses")] for part in group.names()},
    )
    table.done()
    return spec


def _sample(group: Table, name: str) -> FileSet:
    table = group.named(name)
    spec = FileSet(name=name, licence=table.text("licence"), files=required_files(table))
    table.done()
    return spec


def _checked(where: str, needs: Callable[[str], object], name: str) -> None:
    try:
        needs(name)
    except ModelNotFoundError as error:
        raise ConfigError(f"{where}: {error.detail}") from error

"""The catalogue: `catalog.toml` read into validated frozen specs. A wrong or unknown key is a ConfigError by name.

Knows the grammar of the tables, nothing of networks, caches or adapters.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from shared.errors import ConfigError, ModelNotFoundError
from shared.models.spec import FileSet, ModelSpec
from shared.models.tables import Table, file_specs, parameters, required_files

DEFAULT = Path(__file__).with_name("catalog.toml")


@dataclass(frozen=True)
class Catalog:
    models: Mapping[str, ModelSpec]
    samples: Mapping[str, FileSet]
    roles: Mapping[str, str]
    """Per role the name of its default model."""
    stages: Mapping[str, tuple[str, ...]]
    """Per stage the roles or models it needs before it is ready."""

    def choosing(self, choices: Mapping[str, str]) -> Catalog:
        """The same catalogue with other models for some roles. Raises ConfigError for a model without that role."""
        for role, name in choices.items():
            if name not in self.models or self.models[name].role != role:
                raise ConfigError(f"The catalogue has no {role} that is called {name!r}.")
        return replace(self, roles={**self.roles, **choices})

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
        for name in self.stages.get(stage, ()):
            found.update({spec.name: spec for spec in self.closure(name)})
        return tuple(found.values())

    def closure(self, name: str) -> tuple[ModelSpec, ...]:
        """The model called `name` after everything it uses. Raises ModelNotFoundError, ConfigError for a circle."""
        return tuple(self._closure(name, ()))

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


def load(path: Path) -> Catalog:
    """Raises ConfigError, naming the table and the key."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path.name}: {error}") from error
    table = Table(path.name, document)
    models = {name: _model(name, entry) for name, entry in table.tables("models")}
    samples = {name: _sample(name, entry) for name, entry in table.tables("samples")}
    chosen, needs = table.table("roles"), table.table("stages")
    roles = {role: chosen.text(role) for role in chosen.names()}
    stages = {stage: needs.texts(stage) for stage in needs.names()}
    table.done()
    catalog = Catalog(models, samples, {}, stages).choosing(roles)
    for name in stages:
        _checked(f"{path.name}.stages.{name}", catalog.needed_by, name)
    for name in models:
        _checked(f"{path.name}.models.{name}.uses", catalog.closure, name)
    return catalog


def _model(name: str, table: Table) -> ModelSpec:
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


def _sample(name: str, table: Table) -> FileSet:
    spec = FileSet(name=name, licence=table.text("licence"), files=required_files(table))
    table.done()
    return spec


def _checked(where: str, needs: Callable[[str], object], name: str) -> None:
    try:
        needs(name)
    except ModelNotFoundError as error:
        raise ConfigError(f"{where}: {error.detail}") from error

"""The catalogue: `catalog.toml` read into validated frozen specs. A wrong or unknown key is a ConfigError by name.

Knows the grammar of the tables, nothing of networks, caches or adapters.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from shared.errors import ConfigError, ModelNotFoundError
from shared.models.spec import FileSet, ModelSpec
from shared.models.tables import Table, file_specs, parameters, required_files

T = TypeVar("T")

DEFAULT = Path(__file__).with_name("catalog.toml")


@dataclass(frozen=True)
class Catalog:
    models: Mapping[str, ModelSpec]
    samples: Mapping[str, FileSet]
    stages: Mapping[str, tuple[str, ...]]
    """Per stage the roles or models it needs before it is ready."""

    def model(self, name: str, choices: Mapping[str, str] | None = None) -> ModelSpec:
        """The model called `name`, or the one `choices` names for the role `name`. Raises ModelNotFoundError."""
        chosen = (choices or {}).get(name, name)
        if chosen not in self.models:
            known = ", ".join(sorted(self.models))
            raise ModelNotFoundError(f"No model is called {chosen!r}; the catalogue has {known}.")
        return self.models[chosen]

    def needed_by(self, stage: str, choices: Mapping[str, str]) -> tuple[ModelSpec, ...]:
        """Models of a stage; none for a stage that the catalogue does not list."""
        return tuple(self.model(name, choices) for name in self.stages.get(stage, ()))


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
    stages = _stages(table, models)
    table.done()
    return Catalog(models, samples, stages)


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
    )
    table.done()
    return spec


def _sample(name: str, table: Table) -> FileSet:
    spec = FileSet(name=name, licence=table.text("licence"), files=required_files(table))
    table.done()
    return spec


def _stages(table: Table, models: Mapping[str, ModelSpec]) -> dict[str, tuple[str, ...]]:
    known = set(models) | {model.role for model in models.values()}
    stages = table.table("stages")
    found = {name: stages.texts(name) for name in stages.names()}
    for name, needs in found.items():
        _check_needs(f"{stages.where}.{name}", needs, known)
    return found


def _check_needs(where: str, needs: Sequence[str], known: set[str]) -> None:
    for need in needs:
        if need not in known:
            raise ConfigError(f"{where}: {need!r} is neither a role nor a model of the catalogue.")

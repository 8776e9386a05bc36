"""Stand-ins in the product's own catalogue: written as its tables are, fetched from where they were built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shared.models import catalog
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.vision.protocols import Parameter


def table(
    name: str,
    role: str,
    adapter: str,
    files: Mapping[str, Path],
    parameters: Mapping[str, Parameter],
    *,
    commercial: str = "yes",
    uses: Mapping[str, str] | None = None,
) -> str:
    """The model's tables. JSON writes texts, numbers and truth values as TOML does."""
    lines = [f"[models.{name}]", *_values({"role": role, "adapter": adapter, "vendor": "tests"})]
    lines += _values({"licence": "tests", "commercial": commercial})
    for part, path in files.items():
        data = path.read_bytes()
        facts = {"name": path.name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        lines += [f"[models.{name}.files.{part}]", *_values(facts), f'sources = ["file:{path}"]']
    lines += [f"[models.{name}.parameters]", *_values(parameters)]
    if uses:
        lines += [f"[models.{name}.uses]", *_values(uses)]
    return "\n".join(lines) + "\n"


def with_tables(folder: Path, tables: Sequence[str]) -> Catalog:
    """The default catalogue and these models more."""
    (folder / "standins.toml").write_text("\n".join(tables))
    default = catalog.default()
    return replace(default, models={**default.models, **catalog.load(folder / "standins.toml").models})


def cache_over(folder: Path, known: ModelCache) -> ModelCache:
    """A cache of its own that has what `known` has."""
    cache = ModelCache(folder / "cache")
    cache.root.mkdir(parents=True, exist_ok=True)
    known.root.mkdir(parents=True, exist_ok=True)
    for path in known.root.iterdir():
        if path.is_dir() and not path.name.startswith("."):
            (cache.root / path.name).symlink_to(path)
    return cache


def _values(pairs: Mapping[str, Parameter]) -> list[str]:
    return [f"{key} = {json.dumps(value)}" for key, value in pairs.items()]

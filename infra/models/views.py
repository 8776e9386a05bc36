"""What the command line shows of a model: plain facts, then as a table or as text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from shared.errors import JsonValue
from shared.models import manifest
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.models.spec import FileSpec, ModelSpec

Facts = dict[str, JsonValue]

COLUMNS = ("name", "role", "commercial", "licence", "size", "cached")


def summary(spec: ModelSpec, catalog: Catalog, cache: ModelCache) -> Facts:
    """`size` in bytes, of the cached files or else as the catalogue says, None where it does not know."""
    cached = cache.find(spec)
    known = all(file.size or file.source_size for file in spec.files)
    size = sum(path.stat().st_size for path in cached.values()) if cached is not None else spec.size
    return {
        "name": spec.name,
        "role": spec.role,
        "commercial": catalog.commercial(spec.name),
        "licence": spec.licence,
        "size": size if cached is not None or known else None,
        "cached": cached is not None,
    }


def details(spec: ModelSpec, catalog: Catalog, cache: ModelCache) -> Facts:
    """Everything: the summary, the files as asked for and as fetched, what it uses, the adapter's numbers."""
    fetched = manifest.read(cache.root / spec.folder) or {}
    chain: dict[str, JsonValue] = {part.name: part.licence for part in catalog.closure(spec.name) if part is not spec}
    return {
        **summary(spec, catalog, cache),
        "vendor": spec.vendor,
        "adapter": spec.adapter,
        "own_commercial": spec.commercial,
        "uses": dict(spec.uses),
        "licences_of_what_it_uses": chain,
        "parameters": dict(spec.parameters),
        "files": {file.part: _file(spec, file, fetched, cache) for file in spec.files},
    }


def _file(spec: ModelSpec, file: FileSpec, fetched: Mapping[str, manifest.Entry], cache: ModelCache) -> Facts:
    pinned = cache.lock.pinned(spec.name, file)
    entry = fetched.get(file.name)
    facts: Facts = {
        "name": file.name,
        "sources": list(file.sources),
        "made_from": file.origin,
        "convert": file.convert,
        "download_sha256": pinned.download_sha256,
        "pinned_by": _pinned_by(file, pinned),
        "sha256": entry.sha256 if entry else file.sha256,
        "size": entry.size if entry else file.size,
        "note": entry.note if entry else "",
        "path": str(cache.root / spec.folder / file.name) if entry else "",
    }
    return {key: value for key, value in facts.items() if value}


def _pinned_by(file: FileSpec, pinned: FileSpec) -> str:
    if file.download_sha256:
        return "catalogue"
    return "lock file" if pinned.download_sha256 else ""


def print_list(rows: Sequence[Facts]) -> None:
    """A table on a terminal, columns with tabs between them in a pipe."""
    lines = [[_cell(row[column]) for column in COLUMNS] for row in rows]
    if not sys.stdout.isatty():
        for line in [COLUMNS, *lines]:
            print("\t".join(line))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*COLUMNS, box=box.SIMPLE_HEAD)
    table.columns[4].justify = "right"
    for line in lines:
        table.add_row(*line)
    Console().print(table)


def print_details(facts: Facts, indent: str = "") -> None:
    for name, value in facts.items():
        if isinstance(value, dict):
            if value:
                print(f"{indent}{name}:")
                print_details(value, indent + "  ")
        elif isinstance(value, list):
            for item in value:
                print(f"{indent}{name}: {item}")
        else:
            print(f"{indent}{name}: {_cell(value)}")


def _cell(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "?"
    if isinstance(value, int) and value >= 10_000:
        return f"{value / 1e6:.1f} MB"
    return str(value)

"""The command line: `python -m infra.models list | show | fetch | verify`. Exit status as of `main`.

Works on the catalogue and the cache that the settings name (WAKESWAP_MODEL_CACHE, _BUCKET, _LOCK).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from infra.models import views
from shared.errors import ConfigError, JsonValue, WakeswapError
from shared.models import audit, build, display
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.settings import Settings

Command = Callable[[argparse.Namespace, Catalog, ModelCache], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 a model cannot be had or a file is corrupt, 2 wrong arguments or settings."""
    parsed = _parser().parse_args(arguments)
    try:
        settings = Settings.from_environment(os.environ).models
        command: Command = parsed.command
        return command(parsed, build.chosen(settings), build.cache(settings))
    except WakeswapError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.models", description="The models and their cache.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _command(commands, "list", _list, "every model: role, commercial use, licence, size, whether it is in the cache")
    show = _command(commands, "show", _show, "everything about one model")
    show.add_argument("name", help="model or role")
    fetch = _command(commands, "fetch", _fetch, "fill the cache with models and what they use")
    fetch.add_argument("names", nargs="+", metavar="name", help="model or role")
    _command(commands, "verify", _verify, "read the whole cache again and name the files that have changed")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: Command, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(command=run)
    return parser


def _list(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache) -> int:
    rows = [views.summary(spec, catalog, cache) for spec in catalog.models.values()]
    if arguments.json:
        return _json({"models": [*rows]})
    views.print_list(rows)
    return 0


def _show(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache) -> int:
    facts = views.details(catalog.model(arguments.name), catalog, cache)
    if arguments.json:
        return _json(facts)
    views.print_details(facts)
    return 0


def _fetch(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache) -> int:
    specs = {spec.name: spec for name in arguments.names for spec in catalog.closure(name)}
    with display.progress() as progress:
        found = {name: cache.ensure(spec, progress) for name, spec in specs.items()}
    if arguments.json:
        return _json(
            {"models": {name: {part: str(path) for part, path in paths.items()} for name, paths in found.items()}}
        )
    for paths in found.values():
        for path in paths.values():
            print(path)
    return 0


def _verify(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache) -> int:
    findings = list(audit.audit(cache, catalog))
    bad = [finding for finding in findings if finding.state != "ok"]
    if arguments.json:
        _json({"checked": len(findings), "bad": [{**vars(finding)} for finding in bad]})
    else:
        for finding in bad:
            print(f"{finding.state}: {finding.folder}/{finding.file}")
        print(f"{len(findings)} files checked, {len(bad)} bad")
    return int(bool(bad))


def _json(document: JsonValue) -> int:
    print(json.dumps(document, indent=2))
    return 0

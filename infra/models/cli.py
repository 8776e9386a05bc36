"""The command line: `python -m infra.models list | show | fetch | verify`, and with the bucket
`push | pull | promote | drop | gc`. Exit status as of `main`.

Works on the catalogue, the cache and the bucket that the settings name (WAKESWAP_MODEL_CACHE, _BUCKET, _TAG, _LOCK).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from infra.models import bucket_commands, views
from shared.errors import ConfigError, JsonValue, WakeswapError
from shared.models import audit, build, display
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.settings import ModelSettings, Settings

Command = Callable[[argparse.Namespace, Catalog, ModelCache, ModelSettings], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 a model cannot be had or a file is corrupt, 2 wrong arguments or settings."""
    parsed = _parser().parse_args(arguments)
    try:
        settings = Settings.from_environment(os.environ).models
        command: Command = parsed.command
        status = command(parsed, build.chosen(settings), build.cache(settings, refresh=True), settings)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; nor may the flush at the end of the process complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except WakeswapError as error:
        print(f"{error.code}: {error.detail}", file=sys.stderr)
        status = 2 if isinstance(error, ConfigError) else 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.models", description="The models and their cache.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    rows = _command(commands, "list", _list, "every model: role, commercial use, licence, size, whether it is cached")
    rows.add_argument("--bucket", action="store_true", help="the bucket's versions and their channels instead")
    show = _command(commands, "show", _show, "everything about one model")
    show.add_argument("name", help="model or role")
    fetch = _command(commands, "fetch", _fetch, "fill the cache with models and what they use")
    fetch.add_argument("names", nargs="+", metavar="name", help="model or role")
    verify = _command(commands, "verify", _verify, "read the whole cache again and name the files that have changed")
    verify.add_argument("--bucket", action="store_true", help="the bucket's files instead")
    _add_bucket_commands(commands)
    return parser


def _add_bucket_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    push = _command(commands, "push", bucket_commands.push, "store a model's files in the bucket as one version")
    push.add_argument("--file", action="append", default=[], metavar="PART=FILE", help="instead of the cache's files")
    pull = _command(commands, "pull", bucket_commands.pull, "fill the cache with versions out of the bucket")
    pull.add_argument("names", nargs="+", metavar="name[@version or channel]", help="default: WAKESWAP_MODEL_TAG")
    promote = _command(commands, "promote", bucket_commands.promote, "let a channel stand for a version, new or old")
    drop = _command(commands, "drop", bucket_commands.drop, "forget a version")
    gc = _command(commands, "gc", bucket_commands.gc, "remove files that no version names")
    gc.add_argument("--grace-days", type=float, default=7.0, help="leave alone what was written since (default: 7)")
    gc.add_argument(
        "--derived-days", type=float, default=180.0, help="and graphs and engines as old as that (default: 180)"
    )
    gc.add_argument("--dry-run", action="store_true", help="only say what would go")
    for command in (push, promote, drop):
        command.add_argument("name", help="model or role")
        command.add_argument("version")
    promote.add_argument("channel", help="for example stable")
    for command in (push, pull, promote, drop):
        command.add_argument("--tenant", default="", help="a tenant's own models")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: Command, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(command=run)
    return parser


def _list(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache, settings: ModelSettings) -> int:
    if arguments.bucket:
        return bucket_commands.list_bucket(arguments, settings)
    rows = [views.summary(spec, catalog, cache) for spec in catalog.models.values()]
    if arguments.json:
        return _json({"models": [*rows]})
    views.print_list(rows)
    return 0


def _show(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache, _settings: ModelSettings) -> int:
    facts = views.details(catalog.model(arguments.name), catalog, cache)
    if arguments.json:
        return _json(facts)
    views.print_details(facts)
    return 0


def _fetch(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache, _settings: ModelSettings) -> int:
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


def _verify(arguments: argparse.Namespace, catalog: Catalog, cache: ModelCache, settings: ModelSettings) -> int:
    if arguments.bucket:
        return bucket_commands.verify_bucket(arguments, settings)
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

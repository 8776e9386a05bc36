"""The command line: `python -m infra.tenants create | show | check | key create | key list | key revoke`, and for a
cluster `plan | diff | apply | delete | list` (see `cluster_commands`).

Works on a folder of `<tenant>.yaml` (WAKESWAP_TENANTS_FOLDER, or --folder): the one that the processes read, or the
one that a ConfigMap is made from. A key goes to stdout once, when it is made; everything else about it to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from infra.tenants import cluster_commands, files, views
from shared.errors import ConfigError, JsonValue, WakeswapError
from shared.settings import Settings
from shared.tenancy import api_keys, folder
from shared.tenancy.caller import SCOPES

DAY = 86_400.0
Command = Callable[[argparse.Namespace, Path, float], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 a file is wrong or not there, or the cluster refuses, 2 wrong arguments or settings."""
    parsed = _parser().parse_args(arguments)
    try:
        root = _folder(parsed) if parsed.reads_folder else ""
        if parsed.reads_folder and not root:
            print("Say --folder, or set WAKESWAP_TENANTS_FOLDER.", file=sys.stderr)
            return 2
        command: Command = parsed.command
        status = command(parsed, Path(root), time.time())
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough; nor may the flush at the end of the process complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except WakeswapError as error:
        print(f"{error.context.get('field', error.code)}: {error.detail}", file=sys.stderr)
        status = 2 if "variable" in error.context else 1
    return status


def _folder(parsed: argparse.Namespace) -> str:
    return str(parsed.folder) or Settings.from_environment(os.environ).tenants.folder


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.tenants", description="Tenants, their policy, their keys.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    create = _command(commands, "create", _create, "a new tenant with the defaults, and its first key")
    _add_key_options(create)
    show = _command(commands, "show", _show, "what holds for a tenant, defaults included")
    check = _command(commands, "check", _check, "read every file as the processes would, and name what is wrong")
    check.add_argument("folder", nargs="?", default="", metavar="FOLDER", help="default: WAKESWAP_TENANTS_FOLDER")
    key = commands.add_parser("key", help="API keys", description="API keys.")
    keys = key.add_subparsers(required=True, metavar="COMMAND")
    made = _command(keys, "create", _key_create, "a new key beside the old one, shown this once")
    _add_key_options(made)
    listed = _command(keys, "list", _key_list, "a tenant's keys, without what could open anything")
    revoke = _command(keys, "revoke", _key_revoke, "let a key open nothing any more")
    for command in (create, show, made, listed, revoke):
        command.add_argument("name", help="the tenant")
        command.add_argument("--folder", default="", help="default: WAKESWAP_TENANTS_FOLDER")
    revoke.add_argument("look_up", help="the 8 characters that follow wk_")
    cluster_commands.add(partial(_command, commands))
    return parser


def _add_key_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--label", default="", help="who has the key, for people")
    command.add_argument("--days", type=float, help="how long the key lives (default: until it is revoked)")
    command.add_argument("--scope", action="append", choices=SCOPES, help="repeat for several (default: all)")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: Command, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(command=run, reads_folder=True)
    return parser


def _create(arguments: argparse.Namespace, root: Path, now: float) -> int:
    key, kept = _make(arguments, now)
    path = files.create(root, arguments.name, [kept], now)
    return _show_once(arguments, key, kept, now, f"{path} is written.")


def _show(arguments: argparse.Namespace, root: Path, now: float) -> int:
    facts = views.tenant_facts(folder.read(files.path_of(root, arguments.name), now), now)
    if arguments.json:
        return _json(facts)
    views.print_tenant(facts)
    return 0


def _check(arguments: argparse.Namespace, root: Path, now: float) -> int:
    count, faults = views.faults(root, now)
    if arguments.json:
        _json({"checked": count, "faults": {**faults}})
    else:
        for name, fault in faults.items():
            print(f"{name}: {fault}")
        print(f"{count} files checked, {len(faults)} bad")
    return int(bool(faults))


def _key_create(arguments: argparse.Namespace, root: Path, now: float) -> int:
    key, kept = _make(arguments, now)
    with files.keys_of(root, arguments.name, now) as keys:
        if sum(one.is_live(now) for one in keys) >= api_keys.MAX_LIVE:
            raise ConfigError(f"{api_keys.MAX_LIVE} keys are live: revoke one first.", context={"field": "keys"})
        keys[:] = [one for one in keys if one.is_live(now)]  # what has expired opens nothing and only fills the list
        keys.append(kept)
    return _show_once(arguments, key, kept, now, "The processes take it within seconds.")


def _key_list(arguments: argparse.Namespace, root: Path, now: float) -> int:
    keys = folder.read(files.path_of(root, arguments.name), now).keys
    rows = [views.key_facts(key, now) for key in keys]
    if arguments.json:
        return _json({"keys": [*rows]})
    views.print_keys(rows)
    return 0


def _key_revoke(arguments: argparse.Namespace, root: Path, now: float) -> int:
    with files.keys_of(root, arguments.name, now) as keys:
        left = [key for key in keys if key.look_up != arguments.look_up]
        if len(left) == len(keys):
            raise ConfigError("The tenant has no such key.", context={"field": arguments.look_up[:16]})
        keys[:] = left
    print("The key opens nothing any more, within seconds.", file=sys.stderr)
    return _json({"revoked": arguments.look_up}) if arguments.json else 0


def _make(arguments: argparse.Namespace, now: float) -> tuple[str, api_keys.ApiKey]:
    if arguments.days is not None and not 0 < arguments.days <= 36_500:
        raise ConfigError("A key lives more than 0 and at most 36500 days.", context={"field": "--days"})
    seconds = None if arguments.days is None else arguments.days * DAY
    scopes = tuple(scope for scope in SCOPES if scope in (arguments.scope or SCOPES))
    return api_keys.make(now, scopes=scopes, label=arguments.label, seconds=seconds)


def _show_once(arguments: argparse.Namespace, key: str, kept: api_keys.ApiKey, now: float, told: str) -> int:
    print(f"{told} The key is shown this once:", file=sys.stderr)
    if arguments.json:
        return _json({"key": key, **views.key_facts(kept, now)})
    print(key)
    return 0


def _json(document: JsonValue) -> int:
    print(json.dumps(document, indent=2))
    return 0

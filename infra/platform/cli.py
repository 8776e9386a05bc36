"""The command line: `python -m infra.platform check | flags | lint [OVERLAY]`.

    check   which of the cluster's settings the overlay needs and the cluster does not have. Asks the cluster that
            kubectl is set up for, or reads ConfigMaps from files (--config)
    flags   those settings as manifests, for `kubectl apply --server-side --filename -`
    lint    what a cluster would take and not do, would refuse, or would do otherwise than meant

OVERLAY is a folder with a kustomization, a folder of manifests or a file; knative/overlays/production without one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import yaml

from infra.local.fields import ManifestError
from infra.local.yamldocs import kubectl, parse_documents, read_documents
from infra.platform import known
from infra.platform.check import findings
from infra.platform.configs import DEFAULTS, Config, Configs
from infra.platform.needs import Need, missing, needs
from infra.platform.stack import Doc, Stack

PRODUCTION = Path("knative/overlays/production")
SETTINGS = Path("knative/platform")
"""What lint takes for the cluster's settings."""
Command = Callable[[argparse.Namespace, list[Doc]], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 all is well, 1 something is missing or wrong, 2 the manifests or the cluster cannot be read."""
    parsed = _parser().parse_args(arguments)
    command: Command = parsed.command
    try:
        return command(parsed, _read(parsed.overlay))
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2


def _read(overlay: Path) -> list[Doc]:
    """Raises ManifestError where nothing is found: an empty overlay has no faults, and is none that anyone means."""
    docs: list[Doc] = [*read_documents(overlay)]
    if not docs:
        raise ManifestError(f"{overlay}", "there is nothing in it")
    return docs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.platform", description="A cluster's settings and manifests.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = _command(commands, "check", _check, "settings that the overlay needs and the cluster lacks")
    check.add_argument(
        *("--config", "-c"), type=Path, action="append", metavar="FILE", help="ConfigMaps instead of a cluster's"
    )
    check.add_argument("--json", action="store_true", help="for programs")
    _command(commands, "flags", _flags, "the settings that the overlay needs, as manifests")
    lint = _command(commands, "lint", _lint, "what a cluster would refuse, ignore or misunderstand")
    lint.add_argument("--json", action="store_true", help="for programs")
    return parser


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: Command, text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("overlay", nargs="?", type=Path, default=PRODUCTION, metavar="OVERLAY")
    parser.set_defaults(command=run)
    return parser


def _check(arguments: argparse.Namespace, docs: list[Doc]) -> int:
    files: list[Path] = arguments.config or []
    found = [doc for file in files for doc in read_documents(file)] if files else _of_cluster()
    stack = Stack(docs, Configs.of(found))
    lacking, wrong = missing(stack), [each for each in findings(stack) if each.rule in ("flag-value", "flag-name")]
    if arguments.json:
        rows = [{**_row(need), "is": stack.configs.value(need.config, need.key)} for need in lacking]
        print(json.dumps({"missing": rows, "ignored": [each._asdict() for each in wrong]}, indent=1))
    else:
        for need in lacking:
            has = stack.configs.value(need.config, need.key)
            print(f"{need.config}: {need.key} is {has}, must be {_least(need)}   # {need.where}")
        for each in wrong:
            print(f"{each.where}: {each.says}")
        print(_summary(stack, lacking), file=sys.stderr)
    return int(bool(lacking or wrong))


def _flags(_: argparse.Namespace, docs: list[Doc]) -> int:
    print(yaml.safe_dump_all(manifests(Stack(docs)), sort_keys=False), end="")
    return 0


def _lint(arguments: argparse.Namespace, docs: list[Doc]) -> int:
    own = Configs.of(docs)
    schemas = known.schemas()
    found = findings(Stack(docs, own if own.written else Configs.of(read_documents(SETTINGS)), schemas))
    if arguments.json:
        print(json.dumps([each._asdict() for each in found], indent=1))
    else:
        for each in found:
            print(each)
        print(f"{len(docs)} objects, {len(found)} faults", file=sys.stderr)
    if schemas is None:
        print("Fields were not looked at: pip install -r tests/requirements.txt", file=sys.stderr)
    return int(bool(found))


def manifests(stack: Stack) -> list[dict[str, object]]:
    """The ConfigMaps with what differs from Knative's defaults and the stack needs, and nothing else."""
    wanted: dict[Config, dict[str, str]] = {}
    for need in missing(Stack(stack.docs)):
        highest = max(_number(each) for each in needs(stack) if each[:2] == need[:2])
        wanted.setdefault(need.config, {})[need.key] = str(highest) if highest else need.wanted
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": config.name, "namespace": config.namespace},
            "data": dict(sorted(wanted[config].items())),
        }
        for config in DEFAULTS
        if config in wanted
    ]


def _of_cluster() -> list[Doc]:
    """Every ConfigMap that matters here. Raises ManifestError when the cluster does not answer."""
    docs: list[Doc] = []
    for config in DEFAULTS:
        command = [kubectl(), "get", "configmap", config.name, "--namespace", config.namespace, "--output", "yaml"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ManifestError(f"{config}: {done.stderr.strip()}")
        docs += parse_documents(done.stdout, str(config))
    return docs


def _number(need: Need) -> int:
    return int(need.wanted) if need.wanted.isdigit() else 0


def _least(need: Need) -> str:
    return f"at least {need.wanted}" if need.wanted.isdigit() else need.wanted


def _row(need: Need) -> dict[str, str]:
    return {
        "namespace": need.config.namespace,
        "config": need.config.name,
        "key": need.key,
        "wanted": need.wanted,
        "where": need.where,
    }


def _summary(stack: Stack, lacking: list[Need]) -> str:
    every = {(need.config, need.key) for need in needs(stack)}
    return f"{len(every)} settings needed, {len(lacking)} missing"

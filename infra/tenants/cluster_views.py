"""What the cluster's commands print: objects as YAML, changes as lines or as a diff. Never a value of a Secret."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence

import yaml

from infra.tenants import secret_values
from infra.tenants.applying import Change
from infra.tenants.objects import Object
from shared.errors import JsonValue

_VERBS = {"created": "would be created", "changed": "would change", "deleted": "would be deleted"}


def print_objects(objects: Sequence[Object]) -> None:
    """As `kubectl apply -f` reads them."""
    yaml.dump_all(
        objects, sys.stdout, Dumper=_Dumper, sort_keys=False, explicit_start=True, allow_unicode=True, width=120
    )


def print_change(change: Change, *, dry_run: bool) -> None:
    what = "would be created, unchecked" if change.what == "unchecked" else change.what
    print(f"{_VERBS.get(what, what) if dry_run else what}\t{change.key}", flush=True)


def facts(change: Change) -> JsonValue:
    key = change.key
    return {
        "change": change.what, "group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name,
    }  # fmt: skip


def print_diff(changes: Iterable[Change]) -> None:
    for change in changes:
        before, after = map(secret_values.without_values, (change.before, change.after))
        lines = difflib.unified_diff(
            _lines(before), _lines(after), f"cluster: {change.key}", f"planned: {change.key}", lineterm=""
        )
        print("\n".join([*lines, *_other_values(change)]))


def print_tenants(rows: Sequence[dict[str, str]]) -> None:
    print("\t".join(("name", "isolation", "namespace", "state")))
    for row in rows:
        print("\t".join(row.values()))


def _other_values(change: Change) -> list[str]:
    if change.key.kind != "Secret":
        return []
    return [f"~ {change.key}: value of {name}" for name in secret_values.changed(change.before, change.after)]


def _lines(item: Object) -> list[str]:
    shown = yaml.dump(item, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=120)
    return shown.splitlines() if item else []


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as people write them, so that a diff shows the line that differs. No anchors."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's name and signature
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)

"""Server-side apply as the fake API server does it: who owns which field, what conflicts, what an apply removes.

Lists are single values here, as they are in every kind that the tenants' plans apply (for custom resources always, and
`ingress`, `rules`, `subjects`, `limits` of the built-in ones). Checked against kube-apiserver by the same tests.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]
Owner = tuple[str, str]
"""(field manager, operation): `Apply` or `Update`."""
UNOWNED = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid"),
           ("metadata", "resourceVersion"), ("metadata", "generation"), ("metadata", "creationTimestamp"),
           ("metadata", "managedFields")}  # fmt: skip


class ConflictError(Exception):
    def __init__(self, causes: list[tuple[Path, str]]) -> None:
        super().__init__("conflict")
        self.causes = causes


@dataclass
class Stored:
    value: dict[str, Any]
    owners: dict[Owner, set[Path]] = field(default_factory=dict)

    def copy(self) -> Stored:
        return copy.deepcopy(self)

    def apply(self, item: Mapping[str, Any], manager: str, *, force: bool) -> None:
        me, wanted = (manager, "Apply"), dict(leaves(item))
        changed = {path for path, value in wanted.items() if at(self.value, path) != value}
        theirs = [(path, owner) for owner, paths in self.owners.items() if owner != me for path in changed & paths]
        if theirs and not force:
            raise ConflictError([(path, owner[0]) for path, owner in sorted(theirs)])
        for path, owner in theirs:
            self.owners[owner].discard(path)
        before = self.owners.get(me, set())
        self.owners[me] = set(wanted)
        for path in before - set(wanted):
            if not any(path in paths for paths in self.owners.values()):
                remove(self.value, path)
        for path, value in wanted.items():
            put(self.value, path, value)

    def update(self, value: dict[str, Any], manager: str) -> None:
        """`value` as the whole object: what differs from before belongs to the manager alone."""
        before, after = dict(leaves(self.value)), dict(leaves(value))
        changed = {path for path, one in after.items() if path not in before or before[path] != one}
        for paths in self.owners.values():
            paths.difference_update(changed, set(before) - set(after))
        if changed:
            self.owners.setdefault((manager, "Update"), set()).update(changed)
        self.value = value


def leaves(value: Mapping[str, Any], base: Path = ()) -> Iterator[tuple[Path, Any]]:
    for name, inner in value.items():
        path = (*base, name)
        if path in UNOWNED or path == ("status",):
            continue
        if isinstance(inner, Mapping) and inner:
            yield from leaves(inner, path)
        else:
            yield path, inner


def merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for name, inner in patch.items():
        if inner is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), inner)
    return result


def at(value: Any, path: Path) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def put(value: dict[str, Any], path: Path, leaf: Any) -> None:
    for name in path[:-1]:
        if not isinstance(value.get(name), dict):
            value[name] = {}
        value = value[name]
    value[path[-1]] = copy.deepcopy(leaf)


def remove(value: dict[str, Any], path: Path) -> None:
    """With the objects that it leaves empty."""
    inner = at(value, path[:-1]) if len(path) > 1 else value
    if isinstance(inner, dict):
        inner.pop(path[-1], None)
        if not inner and len(path) > 1:
            remove(value, path[:-1])

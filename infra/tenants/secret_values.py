"""The values of a tenant's Secrets: brought by the operator, kept as they are, or made once. Never printed.

Knows `Cluster` and the plan's templates.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from infra.tenants.cluster_protocol import Cluster
from infra.tenants.errors import AlreadyThereError
from infra.tenants.objects import Object, api_of, at, key_of, name_of
from infra.tenants.secret_plan import templates
from shared.errors import ConfigError, JsonValue

Brought: TypeAlias = Mapping[str, Mapping[str, str]]
"""By the Secret's name: its values by their keys."""
_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")


def read(options: list[str]) -> Brought:
    """From `NAME=FILE` each, the files with lines `KEY=value`, as `kubectl create secret --from-env-file` takes them.

    Raises ConfigError naming the file, and no value.
    """
    found: dict[str, Mapping[str, str]] = {}
    for option in options:
        name, equals, path = option.partition("=")
        if not (name and equals and path):
            raise ConfigError("Must be NAME=FILE.", context={"field": "--secret"})
        found[name] = _lines(path)
    return found


def check(brought: Brought, objects: list[Object]) -> None:
    """Raises ConfigError for a Secret that the plan does not have."""
    known = {name_of(item) for item in objects if item.get("kind") == "Secret"}
    if unknown := sorted(set(brought) - known):
        raise ConfigError(
            f"The tenant has no Secret {unknown[0]}, only {', '.join(sorted(known))}.", context={"field": "--secret"}
        )


def filled(
    cluster: Cluster, secret: Object, live: Object | None, brought: Brought, manager: str, *, dry_run: bool
) -> Object:
    """The Secret with every value that it has, gets or needs. Of two who make one at once, one value stays."""
    full = _with(secret, _data(secret, live, brought))
    if live is not None:
        return full
    try:
        cluster.create(full, manager, dry_run=dry_run)
    except AlreadyThereError:
        return _with(secret, _data(secret, cluster.get(api_of(secret), key_of(secret)), brought))
    return full


def without_values(item: Object) -> Object:
    """For people's eyes: which values there are. That one changes shows in none of them but in `changed`."""
    if item.get("kind") != "Secret":
        return item
    hidden: Object = dict.fromkeys(at(item, "data"), "***")
    return {**item, "data": hidden}


def changed(before: Object, after: Object) -> list[str]:
    """Keys of values that are new or other ones."""
    old, new = at(before, "data"), at(after, "data")
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def is_empty(item: Object) -> bool:
    return item.get("kind") == "Secret" and not at(item, "data")


def _with(secret: Object, data: Object) -> Object:
    """Without a field for no values: a server keeps none, and would take it for a change each time."""
    return {**secret, "data": data} if data else secret


def _data(secret: Object, live: Object | None, brought: Brought) -> Object:
    given: dict[str, JsonValue] = {name: _encoded(value) for name, value in brought.get(name_of(secret), {}).items()}
    kept = at(live, "data")
    made: dict[str, JsonValue] = {
        name: _encoded(_made(template)) for name, template in templates(secret).items() if name not in {*kept, *given}
    }
    return {**made, **kept, **given}


def _made(template: str) -> str:
    first, *others = template.split("{random}")
    return first + "".join(secrets.token_hex(32) + rest for rest in others)


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _lines(path: str) -> Mapping[str, str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path!r} cannot be read.", context={"field": "--secret"}) from error
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, value = line.partition("=")
        if not line.strip() or line.startswith("#"):
            continue
        if not equals or not _KEY.fullmatch(name):
            raise ConfigError(f"{path!r}, line {number}: must be KEY=value.", context={"field": "--secret"})
        found[name] = value
    if not found:
        raise ConfigError(f"{path!r} holds no value.", context={"field": "--secret"})
    return found

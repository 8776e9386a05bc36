"""The files of a tenants' folder, changed one at a time and as a whole: whoever reads sees the old or the new one.

What people wrote stays as they wrote it, with its comments; only the block `keys` is written anew, and what stood
inside it besides keys is lost. Knows files and shared.tenancy.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import yaml

from shared.errors import ConfigError
from shared.tenancy import folder
from shared.tenancy.api_keys import ApiKey
from shared.tenancy.tenant import NAME, Tenant

_NEW = """\
# What may stand here: docs/tenant.schema.json; what then holds: python -m infra.tenants show {name}
name: {name}
policy: {{}}
webhook: {{}}
"""


def path_of(root: Path, name: str) -> Path:
    """Raises ConfigError for what is no tenant's name."""
    if not NAME.fullmatch(name):
        raise ConfigError("A tenant name is a DNS label of at most 40 characters.", context={"field": name[:64]})
    return root / f"{name}{folder.SUFFIX}"


def create(root: Path, name: str, keys: Sequence[ApiKey], now: float) -> Path:
    """A new tenant with the defaults. Raises ConfigError when the name cannot be one or is taken."""
    path, text = path_of(root, name), with_keys(_NEW.format(name=name), keys)
    folder.parse(path.name, text, now)
    with _alone(root):
        if path.exists() or path.is_symlink():
            raise ConfigError("There is such a file already.", context={"field": path.name})
        _write(path, text, 0o644)
    return path


@contextmanager
def keys_of(root: Path, name: str, now: float) -> Iterator[list[ApiKey]]:
    """The tenant's keys, to be changed in place; written when the block ends without an error. Raises ConfigError."""
    path = path_of(root, name)
    with _alone(root):
        before = folder.read(path, now)
        if path.is_symlink():
            raise ConfigError(
                "Is a link, as in a mounted ConfigMap: change the folder that it is made from.",
                context={"field": path.name},
            )
        keys = list(before.keys)
        yield keys
        text = with_keys(path.read_text(encoding="utf-8"), keys)
        _same_but_keys(folder.parse(path.name, text, now), before, keys)
        _write(path, text, path.stat().st_mode & 0o777)


def with_keys(text: str, keys: Sequence[ApiKey]) -> str:
    """A file's text with its block `keys` written anew, or put at its end. Raises ConfigError."""
    lines, block = text.splitlines(), [line for key in keys for line in _lines(key)]
    place = _place_of_keys(text)
    start, end = place or (len(lines), len(lines))
    fresh = ["keys:", *block] if keys else ["keys: []"] if place else []
    return "\n".join([*lines[:start], *fresh, *lines[end:]]) + "\n"


def _place_of_keys(text: str) -> tuple[int, int] | None:
    """The first line of the block `keys` and the one after its last; None without one. The text is a tenant's."""
    top = yaml.compose(text, Loader=yaml.CSafeLoader)
    assert isinstance(top, yaml.MappingNode)
    if top.flow_style:
        raise ConfigError("Must have its parts in lines of their own, not in braces.", context={"field": "file"})
    for name, value in top.value:
        if name.value == "keys":
            return name.start_mark.line, max(name.end_mark.line, _last_line(value)) + 1
    return None


def _last_line(node: yaml.Node) -> int:
    """Of what the node itself says: a block's own end lies behind the comments that follow it."""
    inner: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        inner = [part for pair in node.value for part in pair]
    elif isinstance(node, yaml.SequenceNode):
        inner = node.value
    if inner and not node.flow_style:  # type: ignore[attr-defined]
        return max(map(_last_line, inner))
    end = node.end_mark
    return end.line - (end.column == 0 and end.line > node.start_mark.line)


def _lines(key: ApiKey) -> list[str]:
    """One entry. Every text is quoted: of eight letters and digits some read as a number."""
    shown = {name: json.dumps(list(value) if isinstance(value, tuple) else value) for name, value in vars(key).items()}
    first, *others = [f"{name}: {value}" for name, value in shown.items()]
    return [f"  - {first}", *(f"    {line}" for line in others)]


def _same_but_keys(after: Tenant, before: Tenant, keys: Sequence[ApiKey]) -> None:
    if after != replace(before, keys=tuple(keys)):
        raise ConfigError("Cannot be changed without changing more than its keys.", context={"field": "file"})


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """No other command changes the folder meanwhile."""
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigError(f"{str(root)!r} cannot be opened: {error.strerror}.", context={"field": "folder"}) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(path: Path, text: str, mode: int) -> None:
    """Replace the file; its hidden first form is no tenant's file. Raises ConfigError."""
    hidden = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with hidden.open("w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
    except OSError as error:
        hidden.unlink(missing_ok=True)
        raise ConfigError(f"Cannot be written: {error.strerror}.", context={"field": path.name}) from error

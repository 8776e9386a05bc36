"""What a container sees: its variables, its command after `$(NAME)` expansion, and where its volumes lie.

Processes of one machine share its file system, so a mount cannot be at `/models` for one of them only. A volume
is a folder below the state folder instead, and a value of `env`, `envFrom`, `command`, `args` or `workingDir`
that is a mount path, or begins with one and a slash, is rewritten to that folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from infra.local.serving.model import Container, EnvSource, EnvVar, KeyRef, Volume

_REFERENCE = re.compile(r"\$(\$\([^)]*\)|\(([^)]+)\))")


class MissingReferenceError(Exception):
    """A container names a ConfigMap, Secret or key that does not exist: its pod cannot start."""


@dataclass(frozen=True, slots=True)
class Configs:
    """Data of every ConfigMap and Secret, by kind and name."""

    data: Mapping[tuple[str, str], Mapping[str, str]] = field(default_factory=dict)
    folders: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    """Of those whose keys are the files of a folder: a volume of one is that folder, so that it changes with it."""

    def find(self, kind: str, name: str, *, optional: bool) -> Mapping[str, str]:
        found = self.data.get((kind, name))
        if found is None and not optional:
            raise MissingReferenceError(f"{kind} {name} does not exist")
        return found or {}

    def value(self, ref: KeyRef) -> str | None:
        values = self.find(ref.kind, ref.name, optional=ref.optional)
        if ref.key not in values and not ref.optional:
            raise MissingReferenceError(f"{ref.kind} {ref.name} has no key {ref.key}")
        return values.get(ref.key)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Kubernetes' rule: `$(NAME)` of a known variable, `$$(NAME)` for the text itself, anything else untouched."""

    def replace(match: re.Match[str]) -> str:
        name = match.group(2)
        if name is None:
            return match.group(1)
        return variables.get(name, match.group(0))

    return _REFERENCE.sub(replace, text)


def container_variables(
    container: Container, configs: Configs, fixed: Mapping[str, str], overrides: Mapping[str, str]
) -> dict[str, str]:
    """The manifest's variables over `fixed` (PORT, K_SERVICE ...): envFrom first, then env in order, as Kubernetes
    does. An override replaces a value wherever it is used, also inside other values."""
    variables = {**fixed, **overrides}
    for source in container.env_from:
        variables.update(_from_source(source, configs))
        variables.update(overrides)
    for entry in container.env:
        value = overrides.get(entry.name, _value(entry, configs, variables))
        if value is not None:
            variables[entry.name] = value
    return variables


def _from_source(source: EnvSource, configs: Configs) -> dict[str, str]:
    values = configs.find(source.kind, source.name, optional=source.optional)
    return {source.prefix + key: value for key, value in values.items()}


def _value(entry: EnvVar, configs: Configs, variables: Mapping[str, str]) -> str | None:
    return expand(entry.value, variables) if entry.ref is None else configs.value(entry.ref)


def rewrite(text: str, folders: Mapping[str, Path]) -> str:
    """`text` with a leading mount path replaced by its folder; the longest mount path wins."""
    for path in sorted(folders, key=len, reverse=True):
        if text == path or text.startswith(path.rstrip("/") + "/"):
            return str(folders[path]) + text[len(path.rstrip("/")) :]
    return text


def mount_folders(container: Container, root: Path) -> dict[str, Path]:
    """Mount path -> folder, for the volumes that `fill_volumes` made below `root`."""
    return {mount.path: root / mount.volume / mount.sub_path for mount in container.mounts}


def fill_volumes(volumes: tuple[Volume, ...], configs: Configs, root: Path) -> None:
    """Make the folder of every volume, with the files of ConfigMaps and Secrets (owner only) inside."""
    for volume in volumes:
        folder = root / volume.name
        source = configs.folders.get((volume.kind, volume.source))
        if source is not None:
            if volume.items:
                raise MissingReferenceError(f"{volume.kind} {volume.source} is a folder, of which all files are taken")
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            source.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.symlink_to(source)
            continue
        folder.mkdir(parents=True, mode=0o700)
        if volume.kind == "emptyDir":
            continue
        values = configs.find(volume.kind, volume.source, optional=volume.optional)
        for key, name in volume.items or tuple((key, key) for key in values):
            if key not in values:
                raise MissingReferenceError(f"{volume.kind} {volume.source} has no key {key}")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(values[key], encoding="utf-8")
            path.chmod(0o600)

"""Volumes and mounts of a pod: emptyDir, ConfigMap and Secret; every other kind is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from infra.local.fields import (
    ManifestError,
    as_mapping,
    below,
    list_at,
    mapping_at,
    refuse_unknown,
    required_text,
    text_at,
)
from infra.local.serving.model import Mount, Volume

_RESERVED_PATHS = frozenset({"/", "/dev", "/dev/log", "/tmp", "/var", "/var/log"})  # noqa: S108 - refused, not used


def parse_volumes(spec: Mapping[str, object], path: str) -> tuple[Volume, ...]:
    """The pod's volumes; two of one name are refused."""
    volumes = tuple(
        _volume(as_mapping(item, f"{path}.volumes[{i}]"), f"{path}.volumes[{i}]")
        for i, item in enumerate(list_at(spec, "volumes", path))
    )
    names = [volume.name for volume in volumes]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ManifestError(f"{path}.volumes[{i}].name", f"{name!r} is used twice")
    return volumes


def _volume(item: Mapping[str, object], path: str) -> Volume:
    refuse_unknown(item, {"name", "emptyDir", "configMap", "secret"}, path)
    name = required_text(item, "name", path)
    if len(item) != 2:
        raise ManifestError(path, "must have a name and exactly one of emptyDir, configMap, secret")
    if "configMap" in item:
        return _from_keys(name, "ConfigMap", mapping_at(item, "configMap", path), "name", f"{path}.configMap")
    if "secret" in item:
        return _from_keys(name, "Secret", mapping_at(item, "secret", path), "secretName", f"{path}.secret")
    # A size limit and a memory medium have no counterpart in a plain folder.
    refuse_unknown(mapping_at(item, "emptyDir", path), {"medium", "sizeLimit"}, f"{path}.emptyDir")
    return Volume(name=name, kind="emptyDir")


def _from_keys(
    name: str, kind: Literal["ConfigMap", "Secret"], source: Mapping[str, object], name_field: str, path: str
) -> Volume:
    refuse_unknown(source, {name_field, "items", "optional", "defaultMode"}, path)
    items = []
    for i, entry in enumerate(list_at(source, "items", path)):
        item = as_mapping(entry, f"{path}.items[{i}]")
        refuse_unknown(item, {"key", "path"}, f"{path}.items[{i}]")
        relative = required_text(item, "path", f"{path}.items[{i}]")
        if relative.startswith("/") or ".." in relative.split("/"):
            raise ManifestError(f"{path}.items[{i}].path", f"{relative!r} must stay inside the volume")
        items.append((required_text(item, "key", f"{path}.items[{i}]"), relative))
    return Volume(
        name=name,
        kind=kind,
        source=required_text(source, name_field, path),
        items=tuple(items),
        optional=boolean_at(source, "optional", path),
    )


def parse_mounts(container: Mapping[str, object], path: str, volumes: tuple[Volume, ...]) -> tuple[Mount, ...]:
    """The container's volumeMounts, each of a volume that exists."""
    return tuple(
        _mount(as_mapping(item, f"{path}.volumeMounts[{i}]"), f"{path}.volumeMounts[{i}]", volumes)
        for i, item in enumerate(list_at(container, "volumeMounts", path))
    )


def _mount(item: Mapping[str, object], path: str, volumes: tuple[Volume, ...]) -> Mount:
    refuse_unknown(item, {"name", "mountPath", "subPath", "readOnly"}, path)
    name = required_text(item, "name", path)
    found = next((volume for volume in volumes if volume.name == name), None)
    if found is None:
        raise ManifestError(below(path, "name"), f"there is no volume {name!r}")
    where = required_text(item, "mountPath", path)
    if not where.startswith("/") or where in _RESERVED_PATHS:
        raise ManifestError(below(path, "mountPath"), f"{where!r} must be absolute and not reserved")
    sub_path = text_at(item, "subPath", path) or ""
    if sub_path.startswith("/") or ".." in sub_path.split("/"):
        raise ManifestError(below(path, "subPath"), f"{sub_path!r} must stay inside the volume")
    boolean_at(item, "readOnly", path)
    return Mount(volume=name, path=where, sub_path=sub_path)


def boolean_at(parent: Mapping[str, object], key: str, path: str) -> bool:
    """The truth value under `key`; absent is False."""
    value = parent.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise ManifestError(below(path, key), f"must be true or false, not {value!r}")

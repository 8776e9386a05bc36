"""Containers of a pod: command, variables, probes, mounts. Images are named but not run here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from infra.local.fields import (
    NOT_IMPLEMENTED,
    ManifestError,
    as_mapping,
    below,
    integer_at,
    list_at,
    mapping_at,
    refuse_unknown,
    required_text,
    text_at,
)
from infra.local.serving.model import Container, EnvSource, EnvVar, KeyRef, Probe, Volume
from infra.local.serving.probe_spec import parse_probe
from infra.local.serving.volumes import boolean_at, parse_mounts

RESERVED_VARIABLES = frozenset({"PORT", "K_SERVICE", "K_CONFIGURATION", "K_REVISION"})
RESERVED_PORTS = frozenset({8008, 8012, 8013, 8022, 9090, 9091})

_COMMON = frozenset(
    {"name", "image", "imagePullPolicy", "command", "args", "workingDir", "env", "envFrom", "resources", "volumeMounts"}
) | {"securityContext"}
_SERVING = _COMMON | {"ports", "readinessProbe", "livenessProbe", "startupProbe"}
_SECURITY = frozenset(
    {"allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem", "runAsNonRoot", "runAsUser", "runAsGroup"}
) | {"seccompProfile", "fsGroup", "fsGroupChangePolicy", "supplementalGroups"}
_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|[kMGTPE]|[KMGTPE]i)?")
_REF_KINDS: Mapping[str, Literal["ConfigMap", "Secret"]] = {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}
_SOURCE_KINDS: Mapping[str, Literal["ConfigMap", "Secret"]] = {"configMapRef": "ConfigMap", "secretRef": "Secret"}


def parse_containers(
    spec: Mapping[str, object], field: str, path: str, volumes: tuple[Volume, ...]
) -> tuple[Container, ...]:
    """`initContainers` or `containers` of a pod."""
    return tuple(
        _container(as_mapping(item, f"{path}.{field}[{i}]"), f"{path}.{field}[{i}]", volumes, init=field[0] == "i")
        for i, item in enumerate(list_at(spec, field, path))
    )


def _container(item: Mapping[str, object], path: str, volumes: tuple[Volume, ...], *, init: bool) -> Container:
    refuse_unknown(item, _COMMON if init else _SERVING, path, {"lifecycle": "Knative sets it itself"})
    required_text(item, "image", path)
    text_at(item, "imagePullPolicy", path)
    _accept_resources(mapping_at(item, "resources", path), f"{path}.resources")
    accept_security_context(item, path)
    port = _port(item, path)
    command = _texts(item, "command", path)
    if not command:
        raise ManifestError(below(path, "command"), "is required: no image is run here whose entrypoint could serve")
    startup = parse_probe(item, "startupProbe", path, port)
    return Container(
        name=text_at(item, "name", path) or ("init-container" if init else "user-container"),
        command=command,
        args=_texts(item, "args", path),
        working_dir=text_at(item, "workingDir", path),
        env=_env(item, path, init=init),
        env_from=_env_from(item, path),
        mounts=parse_mounts(item, path, volumes),
        readiness=parse_probe(item, "readinessProbe", path, port) or Probe(),
        liveness=parse_probe(item, "livenessProbe", path, port),
        startup=startup,
    )


def _texts(item: Mapping[str, object], key: str, path: str) -> tuple[str, ...]:
    values = list_at(item, key, path)
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise ManifestError(f"{path}.{key}[{i}]", f"must be text, not {value!r} (quote it)")
    return tuple(str(value) for value in values)


def _port(item: Mapping[str, object], path: str) -> int:
    """The declared containerPort (8080 without one); the process gets a port of this machine in PORT instead."""
    ports = list_at(item, "ports", path)
    if not ports:
        return 8080
    if len(ports) > 1:
        raise ManifestError(below(path, "ports"), "at most one port")
    where = f"{path}.ports[0]"
    port = as_mapping(ports[0], where)
    refuse_unknown(port, {"name", "containerPort", "protocol"}, where)
    if (text_at(port, "name", where) or "http1") != "http1":
        raise ManifestError(f"{where}.name", f"{port['name']!r} is {NOT_IMPLEMENTED}, only 'http1' is")
    if (text_at(port, "protocol", where) or "TCP") != "TCP":
        raise ManifestError(f"{where}.protocol", "only TCP")
    number = integer_at(port, "containerPort", where, 1) or 8080
    if number in RESERVED_PORTS or number > 65535:
        raise ManifestError(f"{where}.containerPort", f"{number} is reserved or out of range")
    return number


def _env(item: Mapping[str, object], path: str, *, init: bool) -> tuple[EnvVar, ...]:
    entries = []
    for i, entry in enumerate(list_at(item, "env", path)):
        where = f"{path}.env[{i}]"
        entries.append(_env_var(as_mapping(entry, where), where))
        name = entries[-1].name
        if name in RESERVED_VARIABLES and not (init and name == "PORT"):
            raise ManifestError(f"{where}.name", f"{name} is reserved")
    return tuple(entries)


def _env_var(entry: Mapping[str, object], path: str) -> EnvVar:
    refuse_unknown(entry, {"name", "value", "valueFrom"}, path)
    name = required_text(entry, "name", path)
    if not _VARIABLE.fullmatch(name):
        raise ManifestError(below(path, "name"), f"{name!r} is not a variable name")
    if "valueFrom" not in entry:
        return EnvVar(name, text_at(entry, "value", path) or "")
    if entry.get("value"):
        raise ManifestError(path, "must have value or valueFrom, not both")
    where = f"{path}.valueFrom"
    source = mapping_at(entry, "valueFrom", path)
    refuse_unknown(source, _REF_KINDS, where, {"fieldRef": "Knative refuses it too by default"})
    if len(source) != 1:
        raise ManifestError(where, f"must have exactly one of {', '.join(_REF_KINDS)}")
    return EnvVar(name, ref=_key_ref(source, next(iter(source)), where))


def _key_ref(source: Mapping[str, object], field: str, path: str) -> KeyRef:
    ref, where = mapping_at(source, field, path), f"{path}.{field}"
    refuse_unknown(ref, {"name", "key", "optional"}, where)
    name, key = required_text(ref, "name", where), required_text(ref, "key", where)
    return KeyRef(_REF_KINDS[field], name, key, boolean_at(ref, "optional", where))


def _env_from(item: Mapping[str, object], path: str) -> tuple[EnvSource, ...]:
    sources = []
    for i, entry in enumerate(list_at(item, "envFrom", path)):
        where = f"{path}.envFrom[{i}]"
        source = as_mapping(entry, where)
        refuse_unknown(source, {"prefix", *_SOURCE_KINDS}, where)
        kinds = [kind for kind in _SOURCE_KINDS if kind in source]
        if len(kinds) != 1:
            raise ManifestError(where, f"must have exactly one of {', '.join(_SOURCE_KINDS)}")
        ref, below_kind = mapping_at(source, kinds[0], where), f"{where}.{kinds[0]}"
        refuse_unknown(ref, {"name", "optional"}, below_kind)
        name, optional = required_text(ref, "name", below_kind), boolean_at(ref, "optional", below_kind)
        sources.append(EnvSource(_SOURCE_KINDS[kinds[0]], name, text_at(source, "prefix", where) or "", optional))
    return tuple(sources)


def _accept_resources(resources: Mapping[str, object], path: str) -> None:
    """Checked, not enforced: a process of this machine has no limits of its own."""
    refuse_unknown(resources, {"limits", "requests"}, path)
    for part in resources:
        quantities = mapping_at(resources, part, path)
        refuse_unknown(quantities, _RESOURCES, f"{path}.{part}", {"nvidia.com/gpu": "no devices are handed out"})
        for name, value in quantities.items():
            if not _QUANTITY.fullmatch(str(value)):
                raise ManifestError(f"{path}.{part}.{name}", f"{value!r} is not a quantity")


def accept_security_context(parent: Mapping[str, object], path: str) -> None:
    """Accepted without effect: processes run as the user who runs the platform."""
    context = mapping_at(parent, "securityContext", path)
    refuse_unknown(context, _SECURITY, below(path, "securityContext"))

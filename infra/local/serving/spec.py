"""A `serving.knative.dev/v1` Service document becomes a ServiceSpec; whatever is not implemented is refused by path."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
    text_mapping_at,
)
from infra.local.serving.annotations import parse_scale, progress_deadline, service_port
from infra.local.serving.containers import accept_security_context, parse_containers
from infra.local.serving.model import Container, ServiceSpec, Volume
from infra.local.serving.volumes import parse_volumes

API_VERSION = "serving.knative.dev/v1"
MAX_TIMEOUT_SECONDS = 600
DEFAULT_TIMEOUT_SECONDS = 300
MAX_CONCURRENCY = 1000

_REVISION_FIELDS = frozenset(
    {"containerConcurrency", "timeoutSeconds", "responseStartTimeoutSeconds", "initContainers", "containers", "volumes"}
)
_MEANINGLESS_HERE = frozenset(
    {"serviceAccountName", "automountServiceAccountToken", "enableServiceLinks", "imagePullSecrets", "securityContext"}
)
"""Accepted without effect: they are about a cluster's identities, registries and users."""

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def parse_service(document: Mapping[str, object]) -> ServiceSpec:
    """Raises ManifestError with the full path of the field at fault."""
    refuse_unknown(document, {"apiVersion", "kind", "metadata", "spec"}, "")
    metadata = mapping_at(document, "metadata", "")
    refuse_unknown(metadata, {"name", "namespace", "labels", "annotations"}, "metadata")
    text_mapping_at(metadata, "labels", "metadata")
    name = required_text(metadata, "name", "metadata")
    if not _DNS_1035.fullmatch(name):
        raise ManifestError("metadata.name", f"{name!r} is not a DNS-1035 label")
    spec = mapping_at(document, "spec", "")
    refuse_unknown(spec, {"template", "traffic"}, "spec")
    _accept_traffic(spec)
    template = mapping_at(spec, "template", "spec")
    refuse_unknown(template, {"metadata", "spec"}, "spec.template")
    return _service(metadata, name, template)


def _service(metadata: Mapping[str, object], name: str, template: Mapping[str, object]) -> ServiceSpec:
    path = "spec.template.metadata"
    about = mapping_at(template, "metadata", "spec.template")
    refuse_unknown(about, {"name", "labels", "annotations"}, path)
    text_mapping_at(about, "labels", path)
    annotations = text_mapping_at(about, "annotations", path)
    revision = mapping_at(template, "spec", "spec.template")
    timeout, response_start = _timeouts(revision, "spec.template.spec")
    init, container, volumes = _pod(revision, "spec.template.spec")
    return ServiceSpec(
        namespace=text_at(metadata, "namespace", "metadata") or "default",
        name=name,
        revision=_revision_name(about, name),
        container=container,
        init=init,
        volumes=volumes,
        concurrency=_concurrency(revision, "spec.template.spec"),
        timeout=timeout,
        response_start=response_start,
        progress_deadline=progress_deadline(annotations, f"{path}.annotations"),
        scale=parse_scale(annotations, f"{path}.annotations"),
        public_port=service_port(text_mapping_at(metadata, "annotations", "metadata"), "metadata.annotations"),
    )


def _revision_name(about: Mapping[str, object], service: str) -> str:
    name = text_at(about, "name", "spec.template.metadata")
    if name is None:
        return f"{service}-00001"
    if not name.startswith(f"{service}-") or not _DNS_1035.fullmatch(name):
        raise ManifestError("spec.template.metadata.name", f"{name!r} must be a DNS-1035 label beginning {service}-")
    return name


def _accept_traffic(spec: Mapping[str, object]) -> None:
    for i, item in enumerate(list_at(spec, "traffic", "spec")):
        if dict(as_mapping(item, f"spec.traffic[{i}]")) != {"latestRevision": True, "percent": 100}:
            raise ManifestError(f"spec.traffic[{i}]", f"{NOT_IMPLEMENTED}, only all traffic to the latest revision is")


def _pod(spec: Mapping[str, object], path: str) -> tuple[tuple[Container, ...], Container, tuple[Volume, ...]]:
    refuse_unknown(spec, _REVISION_FIELDS | _MEANINGLESS_HERE, path)
    if spec.get("automountServiceAccountToken", False) is not False:
        raise ManifestError(below(path, "automountServiceAccountToken"), "may only be false")
    accept_security_context(spec, path)
    volumes = parse_volumes(spec, path)
    init = parse_containers(spec, "initContainers", path, volumes)
    containers = parse_containers(spec, "containers", path, volumes)
    if len(containers) != 1:
        raise ManifestError(below(path, "containers"), f"exactly one is implemented, not {len(containers)}")
    mounted = {mount.volume for container in (*init, *containers) for mount in container.mounts}
    for i, volume in enumerate(volumes):
        if volume.name not in mounted:
            raise ManifestError(f"{path}.volumes[{i}].name", f"volume {volume.name!r} is not mounted anywhere")
    return init, containers[0], volumes


def _timeouts(spec: Mapping[str, object], path: str) -> tuple[float, float]:
    """(timeoutSeconds, responseStartTimeoutSeconds) with Knative's defaults: 300, and never more than the first."""
    timeout = integer_at(spec, "timeoutSeconds", path, 0) or DEFAULT_TIMEOUT_SECONDS
    if timeout > MAX_TIMEOUT_SECONDS:
        raise ManifestError(below(path, "timeoutSeconds"), f"must be at most {MAX_TIMEOUT_SECONDS}, not {timeout}")
    start = integer_at(spec, "responseStartTimeoutSeconds", path, 0) or DEFAULT_TIMEOUT_SECONDS
    return float(timeout), float(min(start, timeout))


def _concurrency(spec: Mapping[str, object], path: str) -> int:
    value = integer_at(spec, "containerConcurrency", path, 0) or 0
    if value > MAX_CONCURRENCY:
        raise ManifestError(below(path, "containerConcurrency"), f"must be at most {MAX_CONCURRENCY}, not {value}")
    return value

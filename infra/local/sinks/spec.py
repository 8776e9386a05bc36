"""A `sinks.knative.dev/v1alpha1` JobSink becomes what its Jobs run; whatever is not implemented is refused by path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from infra.local.fields import (
    NOT_IMPLEMENTED,
    ManifestError,
    as_mapping,
    integer_at,
    list_at,
    mapping_at,
    refuse_unknown,
    required_text,
    text_at,
    text_mapping_at,
)
from infra.local.serving.containers import accept_security_context, parse_containers
from infra.local.serving.model import Container, Volume
from infra.local.serving.volumes import parse_volumes

API_VERSION = "sinks.knative.dev/v1alpha1"
BACKOFF_LIMIT = 6
"""Kubernetes' own, where the Job says nothing."""
GRACE_SECONDS = 30
EVENT_VOLUME = "jobsink-event"
_JOB = {"backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "completions", "parallelism", "template"}
_POD = frozenset({"restartPolicy", "terminationGracePeriodSeconds", "initContainers", "containers", "volumes"})
_MEANINGLESS_HERE = frozenset(
    {"serviceAccountName", "automountServiceAccountToken", "enableServiceLinks", "imagePullSecrets", "securityContext"}
) | {"priorityClassName", "nodeSelector", "tolerations", "affinity", "runtimeClassName"}
"""Accepted without effect: they are about a cluster's nodes, identities and users."""
_SPEC, _TEMPLATE = "spec.job.spec", "spec.job.spec.template.spec"


@dataclass(frozen=True, slots=True)
class JobSink:
    """Seconds are floats. `labels`: the Jobs', by which a SinkBinding finds them."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    container: Container
    init: tuple[Container, ...]
    volumes: tuple[Volume, ...]
    backoff_limit: int
    deadline: float | None
    """Of a whole Job, all its pods together."""
    grace: float
    fails: frozenset[int]
    """Exit codes after which no other pod is started."""


def parse_job_sink(document: Mapping[str, object]) -> JobSink:
    """Raises ManifestError with the full path of the field at fault."""
    refuse_unknown(document, {"apiVersion", "kind", "metadata", "spec"}, "")
    metadata = mapping_at(document, "metadata", "")
    refuse_unknown(metadata, {"name", "namespace", "labels", "annotations"}, "metadata")
    spec = mapping_at(document, "spec", "")
    refuse_unknown(spec, {"job"}, "spec")
    job = mapping_at(spec, "job", "spec")
    refuse_unknown(job, {"metadata", "spec"}, "spec.job")
    about = mapping_at(job, "metadata", "spec.job")
    refuse_unknown(about, {"labels", "annotations"}, "spec.job.metadata")
    return _sink(metadata, text_mapping_at(about, "labels", "spec.job.metadata"), mapping_at(job, "spec", "spec.job"))


def _sink(metadata: Mapping[str, object], labels: Mapping[str, str], job: Mapping[str, object]) -> JobSink:
    refuse_unknown(job, _JOB | {"podFailurePolicy"}, _SPEC)
    for name in ("completions", "parallelism"):
        if (integer_at(job, name, _SPEC, 1) or 1) != 1:
            raise ManifestError(f"{_SPEC}.{name}", f"{NOT_IMPLEMENTED}, only 1 is")
    template = mapping_at(job, "template", _SPEC)
    refuse_unknown(template, {"metadata", "spec"}, f"{_SPEC}.template")
    pod = mapping_at(template, "spec", f"{_SPEC}.template")
    init, container, volumes = _pod(pod)
    deadline, limit = integer_at(job, "activeDeadlineSeconds", _SPEC, 1), integer_at(job, "backoffLimit", _SPEC, 0)
    return JobSink(
        namespace=text_at(metadata, "namespace", "metadata") or "default",
        name=required_text(metadata, "name", "metadata"),
        labels=labels,
        container=container,
        init=init,
        volumes=volumes,
        backoff_limit=BACKOFF_LIMIT if limit is None else limit,
        deadline=None if deadline is None else float(deadline),
        grace=float(integer_at(pod, "terminationGracePeriodSeconds", _TEMPLATE, 0) or GRACE_SECONDS),
        fails=_fails(mapping_at(job, "podFailurePolicy", _SPEC), f"{_SPEC}.podFailurePolicy"),
    )


def _pod(spec: Mapping[str, object]) -> tuple[tuple[Container, ...], Container, tuple[Volume, ...]]:
    refuse_unknown(spec, _POD | _MEANINGLESS_HERE, _TEMPLATE)
    if text_at(spec, "restartPolicy", _TEMPLATE) != "Never":
        raise ManifestError(f"{_TEMPLATE}.restartPolicy", "must be Never: each try is a pod of its own")
    accept_security_context(spec, _TEMPLATE)
    volumes = parse_volumes(spec, _TEMPLATE)
    if any(volume.name == EVENT_VOLUME for volume in volumes):
        raise ManifestError(f"{_TEMPLATE}.volumes", f"{EVENT_VOLUME} is JobSink's own")
    init = parse_containers(spec, "initContainers", _TEMPLATE, volumes)
    containers = parse_containers(spec, "containers", _TEMPLATE, volumes)
    if len(containers) != 1:
        raise ManifestError(f"{_TEMPLATE}.containers", f"exactly one is implemented, not {len(containers)}")
    return init, containers[0], volumes


def _fails(policy: Mapping[str, object], path: str) -> frozenset[int]:
    refuse_unknown(policy, {"rules"}, path)
    found: set[int] = set()
    for number, item in enumerate(list_at(policy, "rules", path)):
        where = f"{path}.rules[{number}]"
        rule = as_mapping(item, where)
        refuse_unknown(rule, {"action", "onExitCodes"}, where)
        if text_at(rule, "action", where) != "FailJob":
            raise ManifestError(f"{where}.action", f"{NOT_IMPLEMENTED}, only FailJob is")
        codes = mapping_at(rule, "onExitCodes", where)
        refuse_unknown(codes, {"operator", "values", "containerName"}, f"{where}.onExitCodes")
        if text_at(codes, "operator", f"{where}.onExitCodes") != "In":
            raise ManifestError(f"{where}.onExitCodes.operator", f"{NOT_IMPLEMENTED}, only In is")
        found |= {code for code in list_at(codes, "values", f"{where}.onExitCodes") if isinstance(code, int)}
    return frozenset(found)

"""PingSource, IntegrationSource and SinkBinding documents as dataclasses; what is not implemented is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from infra.local.annotations import refuse_unknown_annotations
from infra.local.eventing.spec import Destination, parse_destination
from infra.local.fields import (
    NOT_IMPLEMENTED,
    ManifestError,
    below,
    mapping_at,
    refuse_unknown,
    required_text,
    text_at,
    text_mapping_at,
)

WATCH = "local.wakeswap.dev/watch"
BUCKET = "local.wakeswap.dev/bucket"
MATCH = "local.wakeswap.dev/match"

_ANY_TIME = datetime(2024, 1, 1, tzinfo=UTC)
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SUBJECTS = {"Service": "serving.knative.dev/v1", "Job": "batch/v1"}
_SQS_ELSEWHERE = frozenset(
    {"autoCreateQueue", "deleteAfterRead", "host", "protocol", "queueURL", "uriEndpointOverride", "overrideEndpoint"}
) | {"delay", "greedy", "maxMessagesPerPoll", "waitTimeSeconds", "visibilityTimeout"}
"""Accepted without effect: how to talk to a queue that one machine does not have."""


@dataclass(frozen=True, slots=True)
class PingSource:
    """`schedule` has five fields, or six with seconds first; `data` is the body, None for none."""

    namespace: str
    name: str
    schedule: str
    timezone: str
    sink: Destination
    content_type: str = ""
    data: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The event source that Knative gives to pings."""
        return f"/apis/v1/namespaces/{self.namespace}/pingsources/{self.name}"


@dataclass(frozen=True, slots=True)
class BucketSource:
    """An SQS queue of bucket notifications, played by a watched folder.

    `match` is a shell pattern for each leading part of a key (`tenants/*/inbox`); everything below matches.
    """

    namespace: str
    name: str
    watch: str
    bucket: str
    region: str
    sink: Destination
    match: str = ""


@dataclass(frozen=True, slots=True)
class SinkBinding:
    """Service `subject`, or every Job with these labels, gets the address of `sink` in K_SINK."""

    namespace: str
    name: str
    subject: str
    sink: Destination
    labels: Mapping[str, str] = field(default_factory=dict)

    def takes(self, labels: Mapping[str, str]) -> bool:
        """Whether it is for a Job with these labels."""
        return bool(self.labels) and self.labels.items() <= labels.items()


def parse_ping(document: Mapping[str, object]) -> PingSource:
    """A `sources.knative.dev/v1` PingSource; raises ManifestError."""
    namespace, name, _ = _identity(document, frozenset())
    spec = mapping_at(document, "spec", "")
    refuse_unknown(spec, {"schedule", "timezone", "contentType", "data", "sink", "ceOverrides"}, "spec")
    overrides = mapping_at(spec, "ceOverrides", "spec")
    refuse_unknown(overrides, {"extensions"}, "spec.ceOverrides")
    timezone = text_at(spec, "timezone", "spec") or "UTC"
    try:
        ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ManifestError("spec.timezone", f"unknown time zone {timezone!r}") from error
    return PingSource(
        namespace=namespace,
        name=name,
        schedule=_schedule(required_text(spec, "schedule", "spec")),
        timezone=timezone,
        sink=parse_destination(spec, "sink", "spec", namespace),
        content_type=text_at(spec, "contentType", "spec") or "",
        data=_data(spec),
        extensions=text_mapping_at(overrides, "extensions", "spec.ceOverrides"),
    )


def _schedule(text: str) -> str:
    plain = _DESCRIPTORS.get(text, text)
    if len(plain.split()) not in (5, 6):
        raise ManifestError("spec.schedule", f"{text!r} must have five fields, six with seconds, or be @hourly ...")
    try:
        CronSim(plain, _ANY_TIME)
    except CronSimError as error:
        raise ManifestError("spec.schedule", f"{text!r}: {error}") from error
    return plain


def _data(spec: Mapping[str, object]) -> str | None:
    data = text_at(spec, "data", "spec")
    if data is None or text_at(spec, "contentType", "spec") != "application/json":
        return data
    try:
        parsed = json.loads(data)
    except ValueError as error:
        raise ManifestError("spec.data", f"is not JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise ManifestError("spec.data", "must be a JSON object")
    return data


def parse_bucket(document: Mapping[str, object]) -> BucketSource:
    """A `sources.knative.dev/v1alpha1` IntegrationSource for aws.sqs; raises ManifestError."""
    namespace, name, annotations = _identity(document, frozenset({WATCH, BUCKET, MATCH}))
    spec = mapping_at(document, "spec", "")
    refuse_unknown(spec, {"aws", "sink"}, "spec", {"timer": "use a PingSource"})
    aws = mapping_at(spec, "aws", "spec")
    refuse_unknown(aws, {"sqs", "auth"}, "spec.aws")
    sqs = mapping_at(aws, "sqs", "spec.aws")
    refuse_unknown(sqs, {"arn", "region", *_SQS_ELSEWHERE}, "spec.aws.sqs")
    required_text(sqs, "arn", "spec.aws.sqs")
    for key in (WATCH, BUCKET):
        if not annotations.get(key):
            raise ManifestError(below("metadata.annotations", key), "is required to play the queue on one machine")
    return BucketSource(
        namespace=namespace,
        name=name,
        watch=annotations[WATCH],
        bucket=annotations[BUCKET],
        region=text_at(sqs, "region", "spec.aws.sqs") or "local",
        sink=parse_destination(spec, "sink", "spec", namespace),
        match=annotations.get(MATCH, ""),
    )


def parse_binding(document: Mapping[str, object]) -> SinkBinding:
    """A `sources.knative.dev/v1` SinkBinding of one Service, or of Jobs by their labels; raises ManifestError."""
    namespace, name, _ = _identity(document, frozenset())
    spec = mapping_at(document, "spec", "")
    refuse_unknown(spec, {"subject", "sink"}, "spec")
    subject = mapping_at(spec, "subject", "spec")
    refuse_unknown(subject, {"apiVersion", "kind", "name", "namespace", "selector"}, "spec.subject")
    kind = text_at(subject, "kind", "spec.subject")
    if kind not in _SUBJECTS:
        raise ManifestError("spec.subject.kind", f"{kind!r} is {NOT_IMPLEMENTED}, only Service and Job are")
    if text_at(subject, "apiVersion", "spec.subject") != _SUBJECTS[kind]:
        raise ManifestError("spec.subject.apiVersion", f"must be {_SUBJECTS[kind]}")
    if kind == "Service":
        refuse_unknown(subject, {"apiVersion", "kind", "name", "namespace"}, "spec.subject")
    return SinkBinding(
        namespace=namespace,
        name=name,
        subject=required_text(subject, "name", "spec.subject") if kind == "Service" else "",
        sink=parse_destination(spec, "sink", "spec", namespace),
        labels=_selector(subject) if kind == "Job" else {},
    )


def _selector(subject: Mapping[str, object]) -> Mapping[str, str]:
    path = "spec.subject.selector"
    selector = mapping_at(subject, "selector", "spec.subject")
    refuse_unknown(selector, {"matchLabels"}, path)
    labels = text_mapping_at(selector, "matchLabels", path)
    if not labels or "name" in subject:
        raise ManifestError(path, "Jobs are chosen by matchLabels and nothing else")
    return labels


def _identity(document: Mapping[str, object], annotations: frozenset[str]) -> tuple[str, str, dict[str, str]]:
    """(namespace, name, annotations) of a source."""
    refuse_unknown(document, {"apiVersion", "kind", "metadata", "spec"}, "")
    metadata = mapping_at(document, "metadata", "")
    refuse_unknown(metadata, {"name", "namespace", "labels", "annotations"}, "metadata")
    text_mapping_at(metadata, "labels", "metadata")
    found = text_mapping_at(metadata, "annotations", "metadata")
    refuse_unknown_annotations(found, annotations, "metadata.annotations")
    namespace = text_at(metadata, "namespace", "metadata") or "default"
    return namespace, required_text(metadata, "name", "metadata"), found

"""Where events come from: the clock and the queues (knative.md section 2.5)."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from infra.platform.rules.registry import rule
from infra.platform.stack import Stack, mapping, name_of, spec_of


@rule("ping-every", "@every counts from when the adapter started, so Knative refuses it.")
def ping_every(stack: Stack) -> Iterator[tuple[str, str]]:
    for source in stack.of("PingSource"):
        schedule = str(spec_of(source).get("schedule"))
        if schedule.startswith("@every"):
            yield f"{name_of(source)}: spec.schedule", f"{schedule!r} is no schedule here; write the minutes"


@rule("ping-schedule", "The webhook refuses what cron or the time zones do not know.")
def ping_schedule(stack: Stack) -> Iterator[tuple[str, str]]:
    for source in stack.of("PingSource"):
        schedule, zone = str(spec_of(source).get("schedule")), str(spec_of(source).get("timezone") or "UTC")
        if not schedule.startswith("@") and not _is_cron(schedule):
            yield f"{name_of(source)}: spec.schedule", f"{schedule!r} is no schedule: minute, hour, day, month, weekday"
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            yield f"{name_of(source)}: spec.timezone", f"{zone!r} is no time zone"


@rule("ping-awake", "A function that hears the clock more often than every two minutes never sleeps.")
def ping_awake(stack: Stack) -> Iterator[tuple[str, str]]:
    for source in stack.of("PingSource"):
        fields = str(spec_of(source).get("schedule")).split()
        if len(fields) == 6 or (len(fields) == 5 and fields[0] in ("*", "*/1")):
            yield f"{name_of(source)}: spec.schedule", "strikes every minute, or every second"


@rule(
    "ping-data",
    "As application/json the data must be a JSON object, and in one of the two fields only.",
)
def ping_data(stack: Stack) -> Iterator[tuple[str, str]]:
    for source in stack.of("PingSource"):
        spec = spec_of(source)
        if "data" in spec and "dataBase64" in spec:
            yield f"{name_of(source)}: spec.data", "may not be there beside dataBase64"
        elif spec.get("contentType") == "application/json" and not _is_object(spec.get("data")):
            yield f"{name_of(source)}: spec.data", "must be a JSON object"


@rule("ping-minute", "Batches of all tenants in one moment start from no pod at all, all at once.")
def ping_minute(stack: Stack) -> Iterator[tuple[str, str]]:
    fire: dict[str, list[str]] = defaultdict(list)
    for source in stack.of("PingSource"):
        minute = str(spec_of(source).get("schedule")).split(" ")[0]
        fire[minute].append(name_of(source))
        if minute in ("0", "@hourly", "@daily", "@midnight", "@weekly", "@monthly"):
            yield f"{name_of(source)}: spec.schedule", "is at the full hour, as everybody's"
    for minute, names in fire.items():
        if len(names) > 1:
            yield f"{names[1]}: spec.schedule", f"fires in the same minute ({minute}) as {names[0]}"


@rule("source-deletes", "The source aws.s3 deletes every object that it has read: the tenant's upload is gone.")
def source_deletes(stack: Stack) -> Iterator[tuple[str, str]]:
    yield from _of_buckets(stack, "deleteAfterRead", False, "must be false; true is the default")


@rule("source-body", "The source aws.s3 makes the whole object the event, over every limit, and never says its key.")
def source_body(stack: Stack) -> Iterator[tuple[str, str]]:
    yield from _of_buckets(stack, "ignoreBody", True, "must be true; the queue's source carries the key")


def _of_buckets(stack: Stack, field: str, wanted: bool, says: str) -> Iterator[tuple[str, str]]:
    """Every source aws.s3 whose `field` is not written down as `wanted`."""
    for source in stack.of("IntegrationSource"):
        bucket = mapping(mapping(spec_of(source).get("aws")).get("s3"))
        if bucket and bucket.get(field) is not wanted:
            yield f"{name_of(source)}: spec.aws.s3.{field}", says


@rule("source-credentials", "A source without credentials is Ready and reads nothing.")
def source_credentials(stack: Stack) -> Iterator[tuple[str, str]]:
    for source in stack.of("IntegrationSource"):
        auth = mapping(mapping(spec_of(source).get("aws")).get("auth"))
        secret = mapping(mapping(auth.get("secret")).get("ref")).get("name")
        if spec_of(source).get("aws") and not secret and not auth.get("serviceAccountName"):
            yield f"{name_of(source)}: spec.aws.auth", "must name a Secret (auth.secret.ref.name) or a ServiceAccount"


@rule("binding-selector", "A binding that selects nothing injects nothing, and its subject publishes nowhere.")
def binding_selector(stack: Stack) -> Iterator[tuple[str, str]]:
    for binding in stack.of("SinkBinding"):
        subject = mapping(spec_of(binding).get("subject"))
        selector = mapping(subject.get("selector"))
        if not (subject.get("name") or selector.get("matchLabels") or selector.get("matchExpressions")):
            yield f"{name_of(binding)}: spec.subject", "must have a name or a selector"


def _is_cron(schedule: str) -> bool:
    try:
        CronSim(schedule, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError:
        return False
    return len(schedule.split()) in (5, 6)


def _is_object(text: object) -> bool:
    try:
        return isinstance(json.loads(str(text)), dict)
    except ValueError:
        return False

"""Sources: what their manifests say, the events they make, and that nothing is announced twice."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

from infra.local.addresses import Addresses
from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.spec import Destination, Reference
from infra.local.fields import ManifestError
from infra.local.sources import bucket, ping
from infra.local.sources.bucket import BucketWatcher, notification
from infra.local.sources.emit import Emitter
from infra.local.sources.folder import Version, scan
from infra.local.sources.ping import PingMemory, PingRunner, moments, ping_event
from infra.local.sources.spec import BucketSource, PingSource, SinkBinding, parse_binding, parse_bucket, parse_ping
from infra.local.state import StateError

SINK = Destination(None, "http://127.0.0.1:1/x")
SINK_FIELD = {"uri": "http://127.0.0.1:1/x"}


class Sink(Emitter):
    """Takes events when it is told to."""

    def __init__(self) -> None:
        self.events: list[CloudEvent] = []
        self.takes = True

    async def emit(self, event: CloudEvent, sink: Destination) -> bool:
        if self.takes:
            self.events.append(event)
        return self.takes


def document(kind: str, spec: dict[str, Any], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": "s", "namespace": "ns", "annotations": annotations or {}}
    return {"apiVersion": "sources.knative.dev/v1", "kind": kind, "metadata": metadata, "spec": spec}


def a_ping(**fields: Any) -> PingSource:
    return parse_ping(document("PingSource", {"schedule": "*/5 * * * *", "sink": SINK_FIELD, **fields}))


BUCKET = BucketSource("ns", "uploads", "/watch", "bucket", "eu-central-1", SINK, "tenants/*/inbox/*")


def test_a_ping_source_is_read() -> None:
    source = a_ping(
        timezone="Europe/Berlin",
        contentType="application/json",
        data='{"a": 1}',
        ceOverrides={"extensions": {"priority": "batch"}},
    )
    assert (source.schedule, source.timezone, source.data) == ("*/5 * * * *", "Europe/Berlin", '{"a": 1}')
    assert source.source == "/apis/v1/namespaces/ns/pingsources/s"
    assert a_ping(schedule="@hourly").schedule == "0 * * * *"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"schedule": "@every 5m"}, "spec.schedule"),
        ({"schedule": "* * * *"}, "spec.schedule"),
        ({"schedule": "61 * * * *"}, "spec.schedule"),
        ({"schedule": "CRON_TZ=UTC 1 * * * *"}, "spec.schedule"),
        ({"timezone": "Mars/Olympus"}, "spec.timezone"),
        ({"contentType": "application/json", "data": "[1]"}, "spec.data"),
        ({"contentType": "application/json", "data": "{"}, "spec.data"),
        ({"dataBase64": "YQ=="}, "spec.dataBase64"),
        ({"ceOverrides": {"attributes": {}}}, "spec.ceOverrides.attributes"),
        ({"sink": {}}, "spec.sink"),
    ],
)
def test_ping_fields_that_are_refused(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        a_ping(**fields)
    assert caught.value.field == field


def test_a_ping_event_is_the_same_for_the_same_moment() -> None:
    source = a_ping(contentType="application/json", data='{"a": 1}', ceOverrides={"extensions": {"x": "y"}})
    moment = datetime(2026, 11, 30, 10, 5, tzinfo=UTC)
    event = ping_event(source, moment)
    assert event == ping_event(source, moment)
    assert event.id != ping_event(source, moment + timedelta(minutes=5)).id
    assert event.data == b'{"a": 1}'
    assert {key: value for key, value in event.attributes.items() if key != "id"} == {
        "specversion": "1.0",
        "source": "/apis/v1/namespaces/ns/pingsources/s",
        "type": "dev.knative.sources.ping",
        "time": "2026-11-30T10:05:00Z",
        "datacontenttype": "application/json",
        "x": "y",
    }


def test_six_fields_begin_with_seconds() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    found = list(islice(moments(a_ping(schedule="*/20 * * * * *"), start), 3))
    assert [moment.second for moment in found] == [20, 40, 0]


def test_a_time_zone_skips_the_hour_that_does_not_exist() -> None:
    source = a_ping(schedule="30 2 * * *", timezone="Europe/Berlin")
    found = list(islice(moments(source, datetime(2026, 3, 27, 12, tzinfo=UTC)), 2))
    assert [moment.astimezone(UTC) for moment in found] == [
        datetime(2026, 3, 28, 1, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    ]


def test_a_ping_runs_at_its_moment_and_remembers_it(tmp_path: Path) -> None:
    async def story() -> None:
        sink, source = Sink(), a_ping(schedule="* * * * * *")
        runner = PingRunner(source, sink, PingMemory(tmp_path / "pings.json"))
        task = asyncio.ensure_future(runner.run())
        async with asyncio.timeout(5):
            while len(sink.events) < 2:
                await asyncio.sleep(0.02)
        task.cancel()
        first, second = (datetime.fromisoformat(event.attributes["time"]) for event in sink.events[:2])
        assert second - first == timedelta(seconds=1)
        last = PingMemory(tmp_path / "pings.json").last(source.source)
        assert last == datetime.fromisoformat(sink.events[-1].attributes["time"])

    asyncio.run(story())


def test_cold_07_missed_runs_are_told_and_not_made_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source, sink = a_ping(schedule="@hourly"), Sink()
    memory = PingMemory(tmp_path / "pings.json")
    memory.remember(source.source, datetime.now(UTC) - timedelta(hours=3, minutes=1))

    async def story() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await PingRunner(source, sink, memory).run()

    with caplog.at_level(logging.WARNING, ping.__name__):
        asyncio.run(story())
    assert any(text in caplog.text for text in ("3 runs missed", "4 runs missed"))
    assert sink.events == []


def a_bucket(annotations: dict[str, str], **spec: Any) -> BucketSource:
    aws = {"sqs": {"arn": "arn:aws:sqs:eu-central-1:1:q", "region": "eu-central-1"}}
    return parse_bucket(document("IntegrationSource", {"aws": aws, "sink": SINK_FIELD, **spec}, annotations))


WATCHED = {"local.wakeswap.dev/watch": "{state}/objects", "local.wakeswap.dev/bucket": "bucket"}


def test_an_integration_source_is_read() -> None:
    source = a_bucket({**WATCHED, "local.wakeswap.dev/match": "a/*"})
    assert (source.watch, source.bucket, source.region, source.match) == (
        "{state}/objects",
        "bucket",
        "eu-central-1",
        "a/*",
    )


@pytest.mark.parametrize(
    ("annotations", "spec", "field"),
    [
        ({}, {}, "metadata.annotations[local.wakeswap.dev/watch]"),
        ({**WATCHED, "local.wakeswap.dev/glob": "x"}, {}, "metadata.annotations[local.wakeswap.dev/glob]"),
        (WATCHED, {"timer": {}}, "spec.timer"),
        (WATCHED, {"aws": {"s3": {}}}, "spec.aws.s3"),
        (WATCHED, {"aws": {"sqs": {"arm": "x"}}}, "spec.aws.sqs.arm"),
        (WATCHED, {"aws": {"sqs": {}}}, "spec.aws.sqs.arn"),
    ],
)
def test_integration_fields_that_are_refused(annotations: dict[str, str], spec: dict[str, Any], field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        a_bucket(annotations, **spec)
    assert caught.value.field == field


def test_a_sink_binding_binds_one_service() -> None:
    subject = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "tiny"}
    found = parse_binding(document("SinkBinding", {"subject": subject, "sink": SINK_FIELD}))
    assert (found.subject, found.sink) == ("tiny", SINK)
    for changed, field in (
        ({**subject, "kind": "Deployment"}, "spec.subject.kind"),
        ({**subject, "selector": {}}, "spec.subject.selector"),
    ):
        with pytest.raises(ManifestError) as caught:
            parse_binding(document("SinkBinding", {"subject": changed, "sink": SINK_FIELD}))
        assert caught.value.field == field


def test_addresses_of_brokers_services_and_paths_below_them() -> None:
    broker = Destination(Reference("eventing.knative.dev/v1", "Broker", "default", "ns"), None)
    door = Destination(Reference("serving.knative.dev/v1", "Service", "tiny", "ns"), "/wake")
    addresses = Addresses([SinkBinding("ns", "b", "tiny", broker)], "http://127.0.0.1:9")
    assert addresses.resolve(door) is None
    addresses.services["tiny"] = "http://127.0.0.1:8"
    assert addresses.resolve(door) == "http://127.0.0.1:8/wake"
    assert addresses.resolve(SINK) == "http://127.0.0.1:1/x"
    assert addresses.sink_of("tiny") == "http://127.0.0.1:9/ns/default"
    assert addresses.sink_of("other") is None


def put(root: Path, key: str, text: str = "x") -> Path:
    path = root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_scan_finds_finished_files_below_matching_folders(tmp_path: Path) -> None:
    for key in (
        "tenants/a/inbox/1.jpg",
        "tenants/b/inbox/deep/er/2.jpg",
        "tenants/a/results/3.jpg",
        "tenants/a/inbox/.hidden.jpg",
        "tenants/a/inbox/half.tmp",
        "tenants/a/inbox/side.meta",
        ".store/tenants/a/inbox/4.jpg",
        "5.jpg",
    ):
        put(tmp_path, key)
    assert set(scan(tmp_path, "tenants/*/inbox/*")) == {"tenants/a/inbox/1.jpg", "tenants/b/inbox/deep/er/2.jpg"}
    assert len(scan(tmp_path, "")) == 4
    assert scan(tmp_path / "absent", "") == {}


def test_a_notification_is_s3s_own_format() -> None:
    event = notification(BUCKET, "tenants/a/inbox/ü b+c.jpg", Version(1_700_000_000_123_456_789, 5, 9), "etag")
    assert (event.type, event.source) == ("dev.knative.connector.event.aws-sqs", "aws-sqs-source")
    assert event.data is not None
    (record,) = json.loads(event.data)["Records"]
    assert record["s3"]["object"]["key"] == "tenants/a/inbox/%C3%BC+b%2Bc.jpg"
    assert unquote_plus(record["s3"]["object"]["key"]) == "tenants/a/inbox/ü b+c.jpg"
    assert (record["eventName"], record["eventVersion"], record["awsRegion"], record["eventTime"]) == (
        "ObjectCreated:Put",
        "2.1",
        "eu-central-1",
        "2023-11-14T22:13:20.123Z",
    )
    assert record["s3"]["object"] | {"key": ""} == {
        "key": "",
        "size": 5,
        "eTag": "etag",
        "sequencer": "17979CFE3D85CD15",
    }
    assert (
        event.id == notification(BUCKET, "tenants/a/inbox/ü b+c.jpg", Version(1_700_000_000_123_456_789, 5, 9), "").id
    )


def test_a_file_is_announced_once_when_it_has_settled_and_again_when_replaced(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    path = put(root, "tenants/a/inbox/1.jpg")

    async def story() -> None:
        sink = Sink()
        watcher = BucketWatcher(BUCKET, root, sink, tmp_path / "memory.sqlite")
        await watcher.look()
        path.write_text("still growing")
        await watcher.look()
        assert sink.events == []
        await watcher.look()
        await watcher.look()
        assert len(sink.events) == 1
        path.write_text("replaced")
        for _ in range(3):
            await watcher.look()
        assert len(sink.events) == 2
        assert sink.events[0].id != sink.events[1].id

    asyncio.run(story())


def test_what_a_sink_does_not_take_stays_new(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    put(root, "tenants/a/inbox/1.jpg")

    async def story() -> None:
        sink = Sink()
        sink.takes = False
        watcher = BucketWatcher(BUCKET, root, sink, tmp_path / "memory.sqlite")
        for _ in range(3):
            await watcher.look()
        sink.takes = True
        await watcher.look()
        assert len(sink.events) == 1

    asyncio.run(story())


def test_a_restart_announces_what_came_meanwhile_and_nothing_else(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    put(root, "tenants/a/inbox/1.jpg")

    async def one_life(sink: Sink) -> None:
        watcher = BucketWatcher(BUCKET, root, sink, tmp_path / "memory.sqlite")
        task = asyncio.ensure_future(watcher.run())
        await asyncio.sleep(3.5 * bucket.POLL_SECONDS)
        task.cancel()
        await asyncio.wait([task])

    first, second = Sink(), Sink()
    asyncio.run(one_life(first))
    put(root, "tenants/a/inbox/2.jpg")
    asyncio.run(one_life(second))
    assert [json.loads(event.data or b"")["Records"][0]["s3"]["object"]["key"] for event in first.events] == [
        "tenants/a/inbox/1.jpg"
    ]
    assert [json.loads(event.data or b"")["Records"][0]["s3"]["object"]["key"] for event in second.events] == [
        "tenants/a/inbox/2.jpg"
    ]


def test_times_in_the_past_make_another_version(tmp_path: Path) -> None:
    path = put(tmp_path, "tenants/a/inbox/1.jpg")
    before = scan(tmp_path, "")
    os.utime(path, ns=(1, 1))
    assert scan(tmp_path, "") != before


def told(sink: Sink) -> list[str]:
    return [json.loads(event.data or b"")["Records"][0]["s3"]["object"]["key"] for event in sink.events]


def test_a_file_that_nobody_can_announce_stops_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "objects"
    far = put(root, "tenants/a/inbox/0-far.jpg")
    os.utime(far, (2**38, 2**38))  # later than a time in nanoseconds can say in 64 bits
    (root / os.fsdecode(b"tenants/a/inbox/1-\xff.jpg")).write_text("x")
    (root / "tenants/a/inbox/2-circle.jpg").symlink_to("2-circle.jpg")
    (root / "tenants/a/inbox/3-unreadable.jpg").symlink_to("/proc/self/mem")
    put(root, "tenants/a/inbox/4.jpg")

    async def story() -> None:
        sink = Sink()
        watcher = BucketWatcher(BUCKET, root, sink, tmp_path / "memory.sqlite")
        for _ in range(4):
            await watcher.look()
        assert sorted(told(sink)) == ["tenants/a/inbox/0-far.jpg", "tenants/a/inbox/4.jpg"]

    asyncio.run(story())
    assert sum("3-unreadable.jpg cannot be announced" in record.message for record in caplog.records) == 1
    assert sum("is not UTF-8" in record.message for record in caplog.records) == 1


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="nobody can tell here who has a file open")
def test_a_file_that_is_still_open_for_writing_waits_however_slowly_it_grows(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    path = put(root, "tenants/a/inbox/1.jpg")

    async def story() -> None:
        sink = Sink()
        watcher = BucketWatcher(BUCKET, root, sink, tmp_path / "memory.sqlite")
        with path.open("ab") as writer:
            for _ in range(3):
                writer.write(b"more")
                writer.flush()
                for _ in range(4):
                    await watcher.look()
            assert sink.events == []
        await watcher.look()
        assert told(sink) == ["tenants/a/inbox/1.jpg"]

    asyncio.run(story())


def test_another_file_of_the_same_size_and_time_in_the_same_place_is_a_new_upload(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    path = put(root, "tenants/a/inbox/1.jpg")
    os.utime(path, ns=(5, 5))

    async def story() -> None:
        sink = Sink()
        watcher = BucketWatcher(BUCKET, root, sink, tmp_path / "memory.sqlite")
        for _ in range(3):
            await watcher.look()
        other = put(tmp_path, "other.jpg")
        os.utime(other, ns=(5, 5))
        other.replace(path)
        for _ in range(3):
            await watcher.look()
        assert told(sink) == ["tenants/a/inbox/1.jpg"] * 2
        assert sink.events[0].id != sink.events[1].id

    asyncio.run(story())


def test_a_memory_that_takes_no_more_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root, memory = tmp_path / "objects", tmp_path / "memory.sqlite"
    put(root, "tenants/a/inbox/1.jpg")

    async def story() -> None:
        sink = Sink()
        watcher = BucketWatcher(BUCKET, root, sink, memory)
        with closing(sqlite3.connect(memory)) as other:
            other.execute("drop table versions")
        for _ in range(4):
            await watcher.look()
        assert told(sink) == ["tenants/a/inbox/1.jpg"]

    asyncio.run(story())
    assert "announcement not remembered" in caplog.text


def test_a_damaged_memory_is_named(tmp_path: Path) -> None:
    memory = tmp_path / "memory.sqlite"
    memory.write_bytes(b"no database" * 1000)
    with pytest.raises(StateError, match=r"memory\.sqlite: file is not a database.*remove it"):
        BucketWatcher(BUCKET, tmp_path, Sink(), memory)
    (tmp_path / "pings.json").write_text("")
    with pytest.raises(StateError, match=r"pings\.json is damaged.*remove it"):
        PingMemory(tmp_path / "pings.json")


def test_a_ping_that_cannot_be_remembered_is_no_reason_to_stop(tmp_path: Path) -> None:
    memory = PingMemory(tmp_path / "absent" / "pings.json")
    now = datetime.now(UTC)
    memory.remember("x", now)
    assert memory.last("x") == now

"""A watched folder plays a bucket whose notifications go through a queue to an IntegrationSource.

A file is announced once it has kept its version over two looks and nobody has it open for writing. The id is made
of key and version, and what was announced is remembered: a crash between sending and remembering repeats the same
id, which the broker drops; files that arrived while nobody looked are found at the next start.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote_plus

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.sources.announced import Announced
from infra.local.sources.emit import Emitter
from infra.local.sources.folder import Version, md5_of, scan
from infra.local.sources.spec import BucketSource

log = logging.getLogger(__name__)

EVENT_TYPE = "dev.knative.connector.event.aws-sqs"
EVENT_SOURCE = "aws-sqs-source"
POLL_SECONDS = 0.3


def notification(source: BucketSource, key: str, version: Version, etag: str) -> CloudEvent:
    """The event that the IntegrationSource makes of one queue message: an S3 event notification, version 2.1."""
    moment = datetime.fromtimestamp(version.mtime_ns / 1e9, UTC).isoformat(timespec="milliseconds")
    when = moment.replace("+00:00", "Z")
    thing = {
        "key": quote_plus(key, safe="/"),
        "size": version.size,
        "eTag": etag,
        "sequencer": f"{version.mtime_ns:016X}",
    }
    record = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": source.region,
        "eventTime": when,
        "eventName": "ObjectCreated:Put",
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": {"name": source.bucket, "arn": f"arn:aws:s3:::{source.bucket}"},
            "object": thing,
        },
    }
    identity = f"{source.bucket}/{key}#{version.mtime_ns}/{version.size}/{version.inode}"
    attributes = {
        "specversion": "1.0",
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, identity)),
        "source": EVENT_SOURCE,
        "type": EVENT_TYPE,
        "subject": EVENT_SOURCE,
        "time": when,
        "datacontenttype": "application/json",
    }
    return CloudEvent(attributes, json.dumps({"Records": [record]}, ensure_ascii=False).encode())


class BucketWatcher:
    """Watches the folder of one BucketSource until cancelled."""

    def __init__(self, source: BucketSource, root: Path, emitter: Emitter, memory: Path) -> None:
        self._source = source
        self._root = root
        self._emitter = emitter
        self._announced = Announced(memory)
        self._seen: dict[str, Version] = {}
        self._unreadable: dict[str, Version] = {}

    async def run(self) -> None:
        """Look, announce what has settled, wait, look again."""
        while True:
            await self.look()
            await asyncio.sleep(POLL_SECONDS)

    def close(self) -> None:
        """Close the memory."""
        self._announced.close()

    async def look(self) -> None:
        """One look; a file whose announcement is not taken stays new and is tried at the next one."""
        found = await asyncio.to_thread(scan, self._root, self._source.match)
        self._announced.keep(found)
        settled = [
            (version.mtime_ns, key)
            for key, version in found.items()
            if self._seen.get(key) == version and self._announced.versions.get(key) != version
        ]
        self._seen = found
        for _, key in sorted(settled):
            await self._announce(key, found[key])

    async def _announce(self, key: str, version: Version) -> None:
        try:
            etag = await asyncio.to_thread(md5_of, self._root / key)
            event = notification(self._source, key, version, etag) if etag else None
        except FileNotFoundError:
            return
        except (OSError, ValueError, OverflowError) as error:  # no right to read it, or a time beyond all calendars
            self._tell(key, version, error)
            return
        if event is not None and await self._emitter.emit(event, self._source.sink):
            self._announced.add(key, version)
            log.info("%s: announced %s", self._source.name, key)

    def _tell(self, key: str, version: Version, error: Exception) -> None:
        """Once for each version, although it is tried at every look."""
        if self._unreadable.get(key) != version:
            self._unreadable[key] = version
            log.warning("%s: %s cannot be announced: %s", self._source.name, key, error)

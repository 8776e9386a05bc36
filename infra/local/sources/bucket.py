"""A watched folder plays a bucket whose notifications go through a queue to an IntegrationSource.

A file is announced once it has kept its size and time over two looks. The announcement's id is made of key, time
and size, and what was announced is remembered: a crash between sending and remembering repeats the same id, which
the broker drops; files that arrived while nobody looked are found at the next start.
"""

from __future__ import annotations

import asyncio
import fnmatch
import hashlib
import json
import logging
import os
import sqlite3
import stat
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote_plus

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.sources.emit import Emitter
from infra.local.sources.spec import BucketSource

log = logging.getLogger(__name__)

EVENT_TYPE = "dev.knative.connector.event.aws-sqs"
EVENT_SOURCE = "aws-sqs-source"
POLL_SECONDS = 0.3
UNFINISHED = (".tmp", ".meta", ".part")


@dataclass(frozen=True, slots=True)
class Version:
    """What tells one content of a file from the next: modification time in nanoseconds, size in bytes."""

    mtime_ns: int
    size: int


def scan(root: Path, match: str) -> dict[str, Version]:
    """Every finished file below `root` whose key matches; hidden names and `UNFINISHED` suffixes are left out."""
    patterns = match.split("/") if match else []
    return dict(_scan(root, "", patterns))


def _scan(folder: Path, prefix: str, patterns: list[str]) -> Iterator[tuple[str, Version]]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.name.endswith(UNFINISHED):
            continue
        if patterns and not fnmatch.fnmatchcase(entry.name, patterns[0]):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _scan(Path(entry.path), f"{prefix}{entry.name}/", patterns[1:])
        elif len(patterns) <= 1:
            yield from _file(entry, prefix + entry.name)


def _file(entry: os.DirEntry[str], key: str) -> Iterator[tuple[str, Version]]:
    try:
        facts = entry.stat()
    except FileNotFoundError:
        return
    if stat.S_ISREG(facts.st_mode):
        yield key, Version(facts.st_mtime_ns, facts.st_size)


def md5_of(path: Path) -> str:
    """The content's MD5 in hex, which is the ETag S3 gives to a plain upload."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


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
    identity = f"{source.bucket}/{key}#{version.mtime_ns}/{version.size}"
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


class Announced:
    """The versions that the sink has taken, on disk. Used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("pragma journal_mode=wal")
        self._database.execute("create table if not exists announced (key text primary key, mtime int, size int)")
        rows = self._database.execute("select key, mtime, size from announced")
        self.versions = {key: Version(mtime, size) for key, mtime, size in rows}

    def add(self, key: str, version: Version) -> None:
        """Remember one."""
        self.versions[key] = version
        row = (key, version.mtime_ns, version.size)
        self._database.execute("insert or replace into announced values (?, ?, ?)", row)

    def keep(self, keys: Mapping[str, Version]) -> None:
        """Forget files that are gone."""
        for key in [key for key in self.versions if key not in keys]:
            del self.versions[key]
            self._database.execute("delete from announced where key = ?", (key,))

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class BucketWatcher:
    """Watches the folder of one BucketSource until cancelled."""

    def __init__(self, source: BucketSource, root: Path, emitter: Emitter, memory: Path) -> None:
        self._source = source
        self._root = root
        self._emitter = emitter
        self._announced = Announced(memory)
        self._seen: dict[str, Version] = {}

    async def run(self) -> None:
        """Look, announce what has settled, wait, look again."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(POLL_SECONDS)
        finally:
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
        except FileNotFoundError:
            return
        if await self._emitter.emit(notification(self._source, key, version, etag), self._source.sink):
            self._announced.add(key, version)
            log.info("%s: announced %s", self._source.name, key)

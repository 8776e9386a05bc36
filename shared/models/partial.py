"""A file on its way, range by range: what a killed process had already written is not fetched again.

    <folder>/<digest>         preallocated, ranges at their places
    <folder>/<digest>.ranges  JSON lines: the object's version first, then the number of each range that is written

Belongs to whoever holds the digest's lock. The record is a hint and never a proof: the file's digest decides, and a
power cut that lost pages costs one more fetch.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from shared.models.receiving import disk_errors

RECORD = ".ranges"
"""Suffix of the record beside the data."""
RANGE = 16 << 20
"""Bytes of one request: long enough that a request's own cost vanishes, short enough that little is lost by a kill."""


class Partial:
    """Safe to share between threads; closed with `close`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = path.with_name(path.name + RECORD)
        self.etag, self.size = "", 0
        self.ahead = 0
        """Bytes at the beginning that were written by `begin`."""
        self.done: set[int] = set()
        self._file = self._record = -1

    @property
    def count(self) -> int:
        return -(-self.size // RANGE)

    def resume(self) -> bool:
        """Take up what is there; False when that is nothing usable."""
        try:
            head, *lines = self._log.read_text(encoding="utf-8").split("\n")
            version = json.loads(head)
            self.etag, self.size = str(version["etag"]), int(version["size"])
            if version["range"] != RANGE or self.path.stat().st_size != self.size:
                return False
        except (OSError, ValueError, KeyError, TypeError):
            return False
        self.done = {int(line) for line in lines[:-1] if line.isdecimal()}  # the last may be torn
        self._open(0)
        return True

    def begin(self, etag: str, size: int, first: bytes) -> None:
        """Start anew with the object's first bytes. Raises CacheFullError when the disk does not hold all of it."""
        self.discard()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.etag, self.size, self.ahead, self.done = etag, size, 0, set()
        self._open(os.O_TRUNC)
        with disk_errors():
            if size:
                os.posix_fallocate(self._file, 0, size)
            os.write(self._record, json.dumps({"etag": etag, "size": size, "range": RANGE}).encode() + b"\n")
        self.write(0, first)
        self.ahead = len(first)

    def write(self, position: int, data: bytes) -> None:
        with disk_errors():
            while data:
                written = os.pwrite(self._file, data, position)
                position, data = position + written, data[written:]

    def finish(self, index: int) -> None:
        """Note that a range is written; one short append, whole or not at all."""
        with disk_errors():
            os.write(self._record, f"{index}\n".encode())
        self.done.add(index)

    def read(self, position: int, into: memoryview) -> int:
        return os.preadv(self._file, [into], position)

    def flush(self) -> None:
        with disk_errors():
            os.fdatasync(self._file)

    def keep(self, target: Path) -> None:
        """Move the finished file to `target`, on disk for good."""
        with disk_errors():
            os.fsync(self._file)
        self.path.replace(target)
        self.discard()

    def discard(self) -> None:
        self.close()
        for path in (self._log, self.path):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        for handle in (self._file, self._record):
            if handle >= 0:
                os.close(handle)
        self._file = self._record = -1

    def _open(self, flags: int) -> None:
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o666)
        self._record = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | flags, 0o666)


def room(path: Path) -> int:
    """Bytes that an unfinished file already takes on disk."""
    with suppress(OSError):
        return path.stat().st_blocks * 512
    return 0

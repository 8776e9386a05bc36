"""One object of a bucket into one file: ranges in parallel, the digest on the way, taken up again after a cut.

Several threads fetch ranges and write them at their places; one sends what is written on to the disk, so that little
is left to wait for at the end; the caller's thread hashes what is complete from the beginning, reading it back from
the page cache. So memory is bounded by the pieces in flight, whatever the file's size, and the digest is known when the
last range is.
"""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from shared.errors import ObjectNotFoundError, PreconditionFailedError
from shared.models.partial import RANGE, Partial
from shared.models.receiving import HEAD, Received, Report
from shared.storage.protocol import ObjectStore

PIECE = 1 << 20
"""Bytes hashed at once: still in the processor's cache, and few enough pieces that threads seldom wait for Python."""
FIRST = 1 << 16
"""Bytes of the first request, which tells the object's size before the others can start."""
THREADS = 4
"""Requests at once: on loopback more gained nothing (libraries.md, section 11)."""


def fetch(
    store: ObjectStore, key: str, expected: tuple[str, int], target: Path, *, partial: Path, report: Report
) -> Received:
    """Leave the object at `target` and nothing at `partial`, which is kept when the connection is lost for good.

    `expected`: its SHA-256 and its size in bytes (0: not known). The caller holds the lock of `partial` and compares
    what came; an object that is too long is not read. Raises the store's errors and CacheFullError.
    """
    part = Partial(partial)
    try:
        got = _resumed(store, key, part, report)
        if got is None or got.sha256 != expected[0]:
            head = _begin(store, key, part, expected[1])
            if part.size > expected[1] > 0:
                part.discard()
                return Received(part.size, "", head)
            got = _complete(store, key, part, report)
        part.keep(target)
    finally:
        part.close()
    return got


def _resumed(store: ObjectStore, key: str, part: Partial, report: Report) -> Received | None:
    if not part.resume():
        return None
    try:
        return _complete(store, key, part, report)
    except (PreconditionFailedError, ObjectNotFoundError):
        return None  # the object was replaced meanwhile: its parts do not fit together


def _begin(store: ObjectStore, key: str, part: Partial, longest: int) -> bytes:
    """The first piece tells the object's version and size, before room is made for the rest."""
    pieces: list[bytes] = []
    info = store.read_range(key, 0, FIRST, lambda _, data: pieces.append(data))
    first = b"".join(pieces)
    if 0 < longest < info.size:
        part.size = info.size
    else:
        part.begin(info.etag, info.size, first)
    return first[:HEAD]


class _Watch:
    """What the fetching threads and the hashing one tell each other."""

    def __init__(self, part: Partial) -> None:
        self.part = part
        self.changed = threading.Condition()
        self.failed: BaseException | None = None
        self.stopped = False
        self._missing = iter([index for index in range(part.count) if index not in part.done])

    def next(self) -> int | None:
        """A range to fetch, None when there is none left to this thread."""
        with self.changed:
            return None if self.stopped else next(self._missing, None)

    def finish(self, index: int) -> None:
        with self.changed:
            self.part.finish(index)
            self.changed.notify_all()

    def ended(self, thread: Future[None]) -> None:
        """The first error ends all threads and reaches the waiting one."""
        if error := thread.exception():
            with self.changed:
                self.failed, self.stopped = self.failed or error, True
                self.changed.notify_all()

    def wait(self, index: int) -> None:
        """Until the range is written. Raises what a thread failed with."""
        with self.changed:
            self.changed.wait_for(lambda: self.failed or index in self.part.done)
            if self.failed:
                raise self.failed

    def flush(self) -> None:
        """Send what is written to the disk, until all is there or `stop`."""
        flushed = 0
        while flushed < self.part.count:
            with self.changed:
                self.changed.wait_for(lambda seen=flushed: self.stopped or len(self.part.done) > seen)  # type: ignore[misc]
                if self.stopped:
                    return
                written = len(self.part.done)
            self.part.flush()
            flushed = written

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.changed.notify_all()


def _complete(store: ObjectStore, key: str, part: Partial, report: Report) -> Received:
    watch = _Watch(part)

    def work() -> None:
        while (index := watch.next()) is not None:
            start, end = max(index * RANGE, part.ahead), min((index + 1) * RANGE, part.size)
            if start < end:
                store.read_range(key, start, end - start, part.write, etag=part.etag)
            watch.finish(index)

    with ThreadPoolExecutor(THREADS + 1, "fetch") as pool:
        pool.submit(watch.flush).add_done_callback(watch.ended)
        for _ in range(min(THREADS, part.count)):
            pool.submit(work).add_done_callback(watch.ended)
        try:
            return _hash(part, watch, report)
        finally:
            watch.stop()


def _hash(part: Partial, watch: _Watch, report: Report) -> Received:
    digest, buffer, head, size = hashlib.sha256(), memoryview(bytearray(PIECE)), b"", 0
    report(0, part.size)
    for index in range(part.count):
        watch.wait(index)
        end = min(part.size, (index + 1) * RANGE)
        while size < end:
            got = part.read(size, buffer[: min(PIECE, end - size)])
            digest.update(buffer[:got])
            head = head or bytes(buffer[: min(got, HEAD)])
            size += got
        report(size, part.size)
    return Received(size, digest.hexdigest(), head)

"""One SQLite file, one connection, one thread: operations that wait together share one transaction and one fsync.

The event loop never waits for the disk. Knows SQLite, not what is stored.
"""

import asyncio
import fcntl
import logging
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

Result = TypeVar("Result")
Operation = Callable[[sqlite3.Connection], Result]


class StoreError(Exception):
    """The file cannot be used now: held by another process, disk full, damaged, or already closed."""


@dataclass(frozen=True, slots=True)
class _Job(Generic[Result]):
    operation: Operation[Result]
    durable: bool
    future: "asyncio.Future[Result]"


class Writer:
    """Runs operations on one connection in the order in which they were handed in."""

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        self._schema = schema
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="broker-store")
        self._pending: list[_Job[object]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._connection: sqlite3.Connection | None = None
        self._lock: int | None = None
        self._identity = 0, 0

    async def open(self) -> None:
        """Take the file for this process and make its tables; StoreError where another process holds it."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connect)

    async def run(self, operation: Operation[Result], *, durable: bool = True) -> Result:
        """The operation's value, once its transaction is committed; StoreError where SQLite failed.

        With `durable` false the commit may be undone by a loss of power (never by the end of the process), which
        saves the fsync. An operation may run a second time after a failed batch.
        """
        if self._connection is None:
            raise StoreError("the store is closed")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._pending.append(_Job(operation, durable, future))  # type: ignore[arg-type]
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        return await future

    async def close(self) -> None:
        """Finish what was handed in, then close the file and let others have it."""
        if self._flusher is not None:
            await self._flusher
        await asyncio.get_running_loop().run_in_executor(self._thread, self._disconnect)
        self._thread.shutdown()

    async def _flush(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            if not await self._settle(batch) and len(batch) > 1:
                for job in batch:
                    await self._settle([job])

    async def _settle(self, batch: list[_Job[object]]) -> bool:
        """Commit a batch and tell its callers; a failed batch of several tells nobody: each is tried by itself."""
        work = asyncio.get_running_loop().run_in_executor(self._thread, self._commit, batch)
        await asyncio.wait([work])
        error = work.exception()
        if error is not None and len(batch) > 1:
            return False
        for job, value in zip(batch, work.result() if error is None else batch, strict=True):
            if job.future.done():
                continue
            if error is None:
                job.future.set_result(value)
            else:
                job.future.set_exception(_translated(error))
        return error is None

    def _commit(self, batch: list[_Job[object]]) -> list[object]:
        assert self._connection is not None
        self._check_place()
        durable = any(job.durable for job in batch)
        self._connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            return [job.operation(self._connection) for job in batch]

    def _check_place(self) -> None:
        """SQLite goes on writing to a file that was removed, and everything in it would be lost with this process."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            raise StoreError(f"{self._path} was removed or replaced while it was in use: start the platform anew")

    def _connect(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if Path(f"{self._path}.lock").exists() and not self._path.exists():
            log.warning("%s is gone: what was on its way when it was last in use is lost", self._path)
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(lock)
            raise StoreError(f"{self._path} is in use by another process") from error
        self._lock = lock
        try:
            self._connection = _opened(self._path, self._schema)
        except sqlite3.Error as error:
            self._disconnect()
            raise StoreError(f"{self._path}: {error}") from error
        except StoreError:
            self._disconnect()
            raise
        found = self._path.stat()
        self._identity = found.st_dev, found.st_ino

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _opened(path: Path, schema: str) -> sqlite3.Connection:
    """A connection to a sound file; StoreError for a damaged one."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.executescript(schema)
        (fault,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError):  # busy, full, no right: not the content's fault
            raise
        raise _damaged(path, str(error)) from error
    if fault != "ok":
        connection.close()
        raise _damaged(path, fault)
    return connection


def _damaged(path: Path, fault: str) -> StoreError:
    fault = " ".join(fault.split())
    return StoreError(
        f"{path} is damaged ({fault}): move it away with its -wal and -shm and start again; events that were on their "
        "way are lost, jobs that stand still can be sent again"
    )


def _translated(error: BaseException) -> BaseException:
    if not isinstance(error, sqlite3.Error):
        return error
    translated = StoreError(str(error))
    translated.__cause__ = error
    return translated

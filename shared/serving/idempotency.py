"""One event, one piece of work, however often it is delivered.

A conditional write takes the work and a heartbeat keeps the lease; the finished reply replaces the lease and is
given again, byte for byte, to every later delivery. A process that dies leaves a lease that runs out. Leases are
compared by wall clock: machines must agree on the time to well within a lease. Knows the object store.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from logging import getLogger
from types import MappingProxyType

from shared.errors import (
    BusyError,
    ObjectNotFoundError,
    PreconditionFailedError,
    StorageError,
    StoreUnavailableError,
    TransientError,
)
from shared.serving import background
from shared.serving.answers import Reply
from shared.serving.record import Record
from shared.storage.protocol import ObjectStore

log = getLogger(__name__)

NO_DEVICE: Mapping[str, float] = MappingProxyType({})
Beat = Callable[[], None]
"""May raise what a store raises: then the next call tries again."""


def nothing() -> None:
    """A beat that does nothing."""


@dataclass(frozen=True)
class Ledger:
    """The records of all events that this process may work on."""

    store: ObjectStore
    seconds: float
    """Length of a lease; the heartbeat renews it every third of that."""
    now: Callable[[], float] = time.time

    def take(self, key: str) -> Lease | Reply:
        """The work, now ours, or the reply of whoever has finished it. Raises BusyError while another holds it."""
        now = self.now()
        mine = Record(owner=uuid.uuid4().hex, expires=now + self.seconds, started=now)
        try:
            etag = self.store.create(key, mine.encode(), content_type="application/json").etag
        except PreconditionFailedError:
            found, etag = self.read(key)
            if found.reply is not None:
                return found.reply
            if found.owner != mine.owner:  # equal: the store wrote our record, but its answer was lost
                if self._live(found, now):
                    raise BusyError from None
                etag = self.write(key, mine, etag)
        return Lease(self, key, mine, etag)

    def _live(self, lease: Record, now: float) -> bool:
        """A lease that ends later than any that can be taken now comes from before a clock was set back. If its owner
        still works, it learns at its next write that the work is no longer its own."""
        return now < lease.expires <= now + 2 * self.seconds

    def read(self, key: str) -> tuple[Record, str]:
        """A record and its ETag. Raises BusyError when it was removed a moment ago: the next delivery may start."""
        try:
            data, info = self.store.get(key)
        except ObjectNotFoundError:
            raise BusyError from None
        return Record.decode(data), info.etag

    def write(self, key: str, record: Record, etag: str) -> str:
        """The ETag of `record`, written over the version `etag`. Raises BusyError when another was faster."""
        try:
            return self.store.replace(key, record.encode(), etag, content_type="application/json").etag
        except PreconditionFailedError:
            raise BusyError from None


class Lease:
    """Work that is ours until it is finished, released, or taken over because we were silent for too long."""

    def __init__(self, ledger: Ledger, key: str, record: Record, etag: str) -> None:
        self._ledger, self._key, self._record, self._etag = ledger, key, record, etag

    @contextmanager
    def kept(self, beat: Beat = nothing) -> Iterator[None]:
        """Renew the lease in the background for as long as the block runs, and call `beat`, at once and each time."""
        stop = threading.Event()
        beats = background.start("lease", lambda: self._beat(stop, beat))
        try:
            yield
        finally:
            stop.set()
            beats.result()

    def renew(self) -> None:
        """Raises BusyError when another process has taken the work over."""
        self._write(replace(self._record, expires=self._ledger.now() + self._ledger.seconds))

    def finish(self, reply: Reply, *, woke: float = 0.0, device: Mapping[str, float] = NO_DEVICE) -> Reply:
        """Store the reply and give it back; if another process has finished meanwhile, its reply counts.

        `woke`: seconds that this process took to wake, when this is its first event; `device`: seconds that models
        ran, by provider. Raises BusyError when another process has taken the work over and is still at it.
        """
        finished = self._ledger.now()
        self._write(replace(self._record, expires=0.0, finished=finished, woke=woke, device=device, reply=reply))
        return self._record.reply or reply

    def release(self) -> None:
        """Let the next delivery start at once. Never fails: a lease that stays runs out by itself."""
        try:
            self._write(replace(self._record, expires=0.0))
        except (BusyError, StorageError, StoreUnavailableError) as error:
            log.warning("lease not released: %s", error)

    def _beat(self, stop: threading.Event, beat: Beat) -> None:
        _attempt(beat)
        while not stop.wait(self._ledger.seconds / 3):
            try:
                self.renew()
            except BusyError:
                log.warning("lease lost: another process has taken the work over")
                return
            except (StorageError, StoreUnavailableError) as error:
                log.warning("lease not renewed, trying again: %s", error)
            _attempt(beat)

    def _write(self, record: Record) -> None:
        """Write over our own last version; when that is gone, what is there now decides whether it is still ours.

        A finished record is never written over, also when its reply is that of another process.
        """
        if self._record.reply is not None:
            return
        try:
            self._etag = self._ledger.write(self._key, record, self._etag)
        except BusyError:
            found, etag = self._ledger.read(self._key)
            if found.reply is not None:
                record = found
            elif found.owner != self._record.owner:
                raise
            else:  # our own write of a moment ago, whose answer was lost
                etag = self._ledger.write(self._key, record, etag)
            self._etag = etag
        self._record = record


def _attempt(beat: Beat) -> None:
    try:
        beat()
    except (TransientError, StorageError) as error:
        log.warning("not kept up, trying again: %s", error)

"""A job ends exactly once, and a cancelled job gets no more work. Both are facts in the job's folder.

Knows the object store, the payloads and how an event says what happened.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from logging import getLogger
from typing import cast

from shared import records
from shared.errors import JsonValue, ObjectNotFoundError, PreconditionFailedError, StorageError, TransientError
from shared.events.event import parse_type, type_of
from shared.events.payloads import TERMINAL, Payload
from shared.jobs import slots
from shared.jobs.records import CANCELLED, JSON, OUTCOME, exists, sweep
from shared.storage import keys
from shared.storage.protocol import ObjectStore

log = getLogger(__name__)


@dataclass(frozen=True)
class Ending:
    """outcome.json."""

    type: str
    """The event's type: which stage ended the job, and how."""
    cause: str
    """What the end came from; the same cause may send its end again."""
    data: dict[str, JsonValue]
    """The event's data: a Result, Rejection or Failure."""

    @property
    def payload(self) -> Payload:
        """The data as what it is. Raises ValueError where type or data are not those of an end."""
        kind, ends = parse_type(self.type), cast(tuple[type[Payload], ...], TERMINAL)
        for end in ends:
            if kind is not None and kind.outcome == end.outcome:
                return records.read(end, self.data)
        raise ValueError(f"{self.type} ends no job")

    @property
    def failed(self) -> bool:
        kind = parse_type(self.type)
        return kind is not None and kind.outcome == "failed"


@dataclass(frozen=True)
class Outcomes:
    """`stage`: whose outcomes these are."""

    store: ObjectStore
    stage: str

    def cancelled(self, tenant: str, job: str) -> bool:
        """Whether the job was cancelled; then what a stage has made for it since is deleted too.

        The mark comes before its own deleting, so asking after the last write leaves nothing, whoever is faster.
        """
        if not exists(self.store, tenant, job, CANCELLED):
            return False
        sweep(self.store, tenant, job)
        return True

    def over(self, tenant: str, job: str, cause: str) -> bool:
        """Whether nobody waits for this part of the job any more: it was cancelled, or has ended, and not by `cause`.

        A failed job may still be replayed, so that the parts that have nothing to do with its failure go on.
        """
        if self.cancelled(tenant, job):
            return True
        try:
            ending = _readable(self.store.get(keys.job(tenant, job, OUTCOME))[0])
        except ObjectNotFoundError:
            return False
        return ending is not None and not ending.failed and ending.cause != cause

    def settle_all(self, tenant: str, payloads: tuple[Payload, ...], cause: str) -> tuple[Payload, ...]:
        """`settle` for what one event leads to; several payloads are parts with which the job goes on."""
        if len(payloads) > 1:
            return () if self.cancelled(tenant, payloads[0].job) else payloads
        settled = [self.settle(tenant, payload, cause) for payload in payloads]
        return tuple(payload for payload in settled if payload is not None)

    def settle(self, tenant: str, payload: Payload, cause: str) -> Payload | None:
        """What may be sent: `payload`, with which the job goes on or ends, the end then being on record; or None.

        Nothing of a cancelled job may be sent. Of two ends of the same `cause` (a crash came between writing and
        sending, or a process was taken for dead) the first is sent again, so that record and event never differ. A
        failure gives way to a result or a rejection, which come after a replay, and a record that nobody can read to
        any end. Any other second end must not be sent.
        """
        if self.cancelled(tenant, payload.job):
            return None
        if not isinstance(payload, TERMINAL):
            return payload
        data = records.write(payload)
        assert isinstance(data, dict)
        ending = Ending(type_of(self.stage, payload.outcome), cause, data)
        kept = self._write(keys.job(tenant, payload.job, OUTCOME), ending)
        self.release(tenant, payload.job)
        return None if kept is None or self.cancelled(tenant, payload.job) else kept.payload

    def release(self, tenant: str, job: str) -> None:
        """The job needs its slot no more: before its end is told, since that starts whoever waits.

        A slot that stays is released by who hears of the end, or its lease runs out.
        """
        try:
            slots.release(self.store, tenant, job)
        except (TransientError, StorageError) as error:
            log.warning("slot not released: %s", error)

    def _write(self, key: str, ending: Ending) -> Ending | None:
        data = records.dumps(records.write(ending))
        with suppress(PreconditionFailedError):
            self.store.create(key, data, content_type=JSON)
            return ending
        while True:
            stored, info = self.store.get(key)
            first = _readable(stored)
            if first is not None and first.cause == ending.cause:
                return first
            if first is not None and (ending.failed or not first.failed):
                return None
            with suppress(PreconditionFailedError):  # yet another end was written meanwhile: look again
                self.store.replace(key, data, info.etag, content_type=JSON)
                return ending


def _readable(data: bytes) -> Ending | None:
    """None for a damaged record, as a disk leaves it that lost power."""
    with suppress(ValueError):
        ending = records.read(Ending, records.loads(data))
        if ending.payload:
            return ending
    return None

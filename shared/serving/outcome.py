"""A job ends exactly once, and a cancelled job gets no more work. Both are facts in the job's folder.

Knows the object store, the payloads and how an event says what happened.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from shared import records
from shared.errors import JsonValue, PreconditionFailedError
from shared.events.event import parse_type, type_of
from shared.events.payloads import TERMINAL, Payload
from shared.jobs.records import CANCELLED, JSON, OUTCOME, exists
from shared.storage import keys
from shared.storage.protocol import ObjectStore


@dataclass(frozen=True)
class Ending:
    """outcome.json."""

    type: str
    """The event's type: which stage ended the job, and how."""
    cause: str
    """What the end came from; the same cause may write its end again."""
    data: dict[str, JsonValue]
    """The event's data: a Result, Rejection or Failure."""

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
        return exists(self.store, tenant, job, CANCELLED)

    def settle(self, tenant: str, payload: Payload, cause: str) -> bool:
        """Whether `payload` may be sent: the job goes on with it, or ends with it, which is now on record.

        An end of the same `cause` is written again (a crash came between writing and sending). A failure gives way
        to a result or a rejection, which come after a replay. Any other second end, and any end of a cancelled
        job, must not be sent.
        """
        if not isinstance(payload, TERMINAL):
            return True
        if self.cancelled(tenant, payload.job):
            return False
        data = records.write(payload)
        assert isinstance(data, dict)
        ending = Ending(type_of(self.stage, payload.outcome), cause, data)
        return self._write(keys.job(tenant, payload.job, OUTCOME), ending)

    def _write(self, key: str, ending: Ending) -> bool:
        data = records.dumps(records.write(ending))
        with suppress(PreconditionFailedError):
            self.store.create(key, data, content_type=JSON)
            return True
        while True:
            stored, info = self.store.get(key)
            first = records.read(Ending, records.loads(stored))
            if first.cause != ending.cause and (ending.failed or not first.failed):
                return False
            with suppress(PreconditionFailedError):  # yet another end was written meanwhile: look again
                self.store.replace(key, data, info.etag, content_type=JSON)
                return True

"""The end of a job that nothing has moved for too long: it fails, once, and whoever waits for it is told.

First a note of what is about to happen, so that a crash between the end on record and the event leaves something to
go on with. Knows how jobs end and the contract; the emitter is handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from infra.retention.plans import every
from shared.audit.lines import ended
from shared.audit.trail import Trail
from shared.errors import PreconditionFailedError
from shared.events import contract
from shared.events.event import Event
from shared.events.payloads import TERMINAL, Failure
from shared.events.proof import EventKeys
from shared.jobs import line
from shared.jobs.records import JSON, OUTCOME, timestamp
from shared.serving.outcome import Outcomes
from shared.storage import keys
from shared.storage.protocol import ObjectStore

STAGE, CODE = "retention", "abandoned"
_SUFFIX = ".ending.json"


@dataclass(frozen=True)
class Endings:
    store: ObjectStore
    trail: Trail
    proof: EventKeys
    publish: Callable[[Event], None]
    """Returns when the broker has the event. Raises BrokerUnavailableError."""
    hours: int
    """After which a job counts as abandoned."""

    def end(self, tenant: str, job: str) -> None:
        """Again for the same job changes nothing and tells the same. Raises BrokerUnavailableError: the next run
        goes on."""
        note = keys.deletion(tenant, job + _SUFFIX)
        with suppress(PreconditionFailedError):
            self.store.create(note, b"{}", content_type=JSON)
        detail = f"Nothing has moved this job for {self.hours} hours."
        payload = Outcomes(self.store, STAGE).settle(tenant, Failure(job, STAGE, CODE, detail, ""), CODE)
        if isinstance(payload, TERMINAL):
            when = timestamp(self.store.head(keys.job(tenant, job, OUTCOME)).modified)
            self.trail.write(tenant, job, CODE, when, [ended(payload, STAGE, self.trail.marks)])
            self.publish(self.proof.sign(contract.first(STAGE, tenant, payload, job)))
        line.withdraw(self.store, tenant, job)
        self.store.delete(note)

    def resume(self, tenant: str) -> None:
        """What a crash has left undone."""
        for info in every(self.store, keys.deletion(tenant)):
            if info.key.endswith(_SUFFIX):
                self.end(tenant, info.key.rpartition("/")[2].removesuffix(_SUFFIX))

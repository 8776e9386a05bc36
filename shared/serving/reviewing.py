"""What a person decides about a job that waits: it goes on with the event that was kept, or it ends.

The verdict is written before anything is done about it, and doing it twice is harmless: ids come from their causes,
and a job ends once. So a repeat after a crash finishes the work, and of two persons the first decides. Knows the
holds, the contract and how a job ends; the emitter is handed in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared.audit.lines import REVIEW, Line
from shared.audit.trail import Trail
from shared.errors import JsonValue, NotFoundError
from shared.events import contract
from shared.events.event import Event
from shared.events.payloads import Rejection
from shared.events.proof import EventKeys
from shared.jobs import holds
from shared.jobs.holds import APPROVED, Hold, Review, ReviewDecidedError
from shared.jobs.records import timestamp
from shared.rejections import ContentRefusedError
from shared.serving.outcome import Outcomes
from shared.storage.protocol import ObjectStore

CAUSE = "review"


@dataclass(frozen=True)
class Reviews:
    store: ObjectStore
    trail: Trail
    proof: EventKeys
    publish: Callable[[Event], None]
    """Returns when the broker has the event. Raises BrokerUnavailableError."""
    now: Callable[[], float]

    def find(self, job: str, tenant: str = "") -> list[Hold]:
        """What the job waits for. Raises NotFoundError."""
        found = [hold for hold in holds.pending(self.store) if hold.job == job and tenant in ("", hold.tenant)]
        if not found:
            raise NotFoundError(f"No job {job} waits for a person.")
        return found

    def decide(self, hold: Hold, verdict: str, by: str, note: str = "") -> Review:
        """The verdict on record, carried out. `verdict`: APPROVED or REJECTED.

        Raises ReviewDecidedError when the other one was given before, BrokerUnavailableError: then ask again.
        """
        kept = holds.decide(self.store, hold, Review(verdict, by, timestamp(self.now()), note, hold.checks))
        if kept.verdict != verdict:
            raise ReviewDecidedError(
                f"{kept.by} has {kept.verdict} the job at {kept.at}.", context={"verdict": kept.verdict, "by": kept.by}
            )
        event = hold.original()
        following = contract.again(event, CAUSE) if verdict == APPROVED else self._end(hold, event)
        line = Line(REVIEW, verdict, f"person:{kept.by}", facts={"stage": hold.stage, "checks": [*hold.checks]})
        self.trail.write(hold.tenant, hold.job, f"{CAUSE}.{hold.digest}", kept.at, [line])
        if following is not None:
            self.publish(self.proof.sign(following))
        holds.done(self.store, hold)
        return kept

    def _end(self, hold: Hold, event: Event) -> Event | None:
        """The job's end, now on record; None when it has ended otherwise meanwhile."""
        context: dict[str, JsonValue] = {"review": True, "checks": [*hold.checks]}
        error = ContentRefusedError("A person has refused the job's pictures.", context=context)
        rejection = Rejection(hold.job, hold.stage, error.code, error.detail, error.status, error.context)
        settled = Outcomes(self.store, hold.stage).settle(hold.tenant, rejection, f"{CAUSE}.{hold.digest}")
        return None if settled is None else contract.reply(hold.stage, event, settled)

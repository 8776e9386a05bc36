"""The lines of the audit: who decided what about which job, and why. One line is one decision.

Knows the payloads and how pictures are marked; nothing of where lines are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.audit.marks import Marks
from shared.errors import JsonValue
from shared.events.payloads import Failure, Job, ObjectRef, Rejection, Result

JOB, MODERATION, REVIEW, RESULT, WEBHOOK, ACCESS, RETENTION = (
    "job",
    "moderation",
    "review",
    "result",
    "webhook",
    "access",
    "retention",
)
"""What a decision can be about. `access`: a request that was turned away before there was a job."""
ACCEPTED, REFUSED, FAILED, CANCELLED, PUBLISHED, DELIVERED, DELETED = (
    "accepted",
    "refused",
    "failed",
    "cancelled",
    "published",
    "delivered",
    "deleted",
)
"""Decisions. Those about pictures are `shared.jobs.decisions`' actions, a person's verdicts `shared.jobs.holds`'."""
_FACTS = frozenset({"limit", "value", "field", "model", "stage", "picture", "check", "score", "threshold", "status"})
"""What of an error's context may stand in a line: names and numbers of ours, never a name that somebody sent."""


@dataclass(frozen=True)
class Line:
    what: str
    decision: str
    by: str
    """A caller's key or token (its look-up characters, `env:<tenant>`, `jwt:<digest of the subject>`), `door:upload`,
    `door:batch`, `stage:<stage>`, `person:<name>`, `address:<mark>` or `retention`."""
    code: str = ""
    """The reason, a stable code; empty where there is nothing to explain."""
    facts: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A line as it is kept."""

    at: str
    """RFC 3339, UTC, milliseconds."""
    tenant: str
    job: str
    """Empty where there was none."""
    what: str
    decision: str
    by: str
    code: str = ""
    facts: dict[str, JsonValue] = field(default_factory=dict)


def accepted(job: Job, by: str, marks: Marks) -> Line:
    pictures: dict[str, JsonValue] = {"source": [_mark(ref, marks) for ref in job.source]}
    pictures["target"] = _mark(job.target, marks)
    if job.reference is not None:
        pictures["reference"] = _mark(job.reference, marks)
    facts: dict[str, JsonValue] = {"origin": job.origin, "priority": job.priority, "created": job.created}
    return Line(JOB, ACCEPTED, by, facts=facts | ({"pictures": pictures} if marks else {}))


def ended(payload: Result | Rejection | Failure, stage: str, marks: Marks) -> Line:
    """`stage`: whose word this is."""
    by = f"stage:{stage}"
    if isinstance(payload, Result):
        size: dict[str, JsonValue] = {"width": payload.width, "height": payload.height}
        return Line(RESULT, PUBLISHED, by, facts=size | ({"picture": _mark(payload.image, marks)} if marks else {}))
    if isinstance(payload, Rejection):
        return Line(JOB, REFUSED, by, payload.code, {"stage": payload.stage, **known(payload.context)})
    return Line(JOB, FAILED, by, payload.code, {"stage": payload.stage})


def known(context: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """What of an error's context may be kept."""
    return {name: value for name, value in context.items() if name in _FACTS}


def _mark(ref: ObjectRef, marks: Marks) -> str:
    return marks.picture(ref.digest)

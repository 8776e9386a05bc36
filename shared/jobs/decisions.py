"""What moderation decided about the pictures of a job: one record a stage, with the model that said so.

    jobs/<job>/<stage>/decisions.json

No banned word and no text of a picture stands in it: `words` are places in the tenant's own list. Knows the store.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from shared import records
from shared.audit import journal
from shared.audit.lines import MODERATION, Line
from shared.errors import JsonValue, ObjectNotFoundError
from shared.jobs.records import JSON
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.storage.scoped import TenantStore

NAME = "decisions.json"
STAGES = ("moderate", "publish")
"""Who looks at pictures, in the order of a job: at what was sent, and at what was made."""
NSFW, WORDS = "nsfw", "words"
PASS, REJECT, REVIEW, BLUR, APPROVED = "pass", "reject", "review", "blur", "approved"
"""Actions. `approved`: it would have been `review`, and a person has let it pass."""


@dataclass(frozen=True)
class Decision:
    """One check of one picture."""

    picture: str
    """`source`, `target`, `reference` or `finished`."""
    check: str
    """`nsfw` or `words`."""
    model: str
    """Catalogue name."""
    digest: str
    """SHA-256 over the digests of the model's files, as `sha256sum` lists them."""
    score: float
    """0..1: of `nsfw` the model's probability; of `words` how surely the banned words were read, 0 where none was."""
    threshold: float
    """From which it is a hit; of `words` 0, the reader itself leaves out what it is not sure of."""
    action: str
    words: tuple[int, ...] = ()
    """Which banned words, by their places in the tenant's list, counted from 0."""
    boxes: tuple[float, ...] = ()
    """Where they stand: x, y of four corners each, in parts of the picture's width and height."""


@dataclass(frozen=True)
class _Record:
    decisions: tuple[Decision, ...]


def keep(storage: TenantStore, decisions: tuple[Decision, ...]) -> None:
    """Put a stage's decisions on record, and note them for the audit. All of moderation's come through here."""
    storage.save(NAME, records.dumps(records.write(_Record(decisions))), JSON)
    journal.note(*(_line(storage.stage, one) for one in decisions))


def _line(stage: str, one: Decision) -> Line:
    facts: dict[str, JsonValue] = {"picture": one.picture, "score": one.score, "threshold": one.threshold}
    return Line(MODERATION, one.action, f"stage:{stage}", one.check, facts | {"model": one.model, "digest": one.digest})


def of_stage(store: ObjectStore, tenant: str, job: str, stage: str) -> tuple[Decision, ...]:
    """None of a stage that has not looked, or whose record nobody can read."""
    with suppress(ObjectNotFoundError, ValueError):
        data, _ = store.get(keys.job(tenant, job, stage, NAME))
        return records.read(_Record, records.loads(data)).decisions
    return ()


def of_job(store: ObjectStore, tenant: str, job: str) -> dict[str, tuple[Decision, ...]]:
    """All that is on record about a job, by stage."""
    found = {stage: of_stage(store, tenant, job, stage) for stage in STAGES}
    return {stage: decisions for stage, decisions in found.items() if decisions}

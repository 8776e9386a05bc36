"""What moderation decided about the pictures of a job: one record a stage, with the model that said so.

    jobs/<job>/<stage>/decisions.json
    jobs/<job>/<stage>/decisions.<part>.json    of a stage that looks at a video's segments

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
_PARTS = "decisions."
STAGES = ("moderate", "detect", "publish")
"""Who looks at pictures, in the order of a job: at what was sent, detect at a video's frames, and at what was made."""
SEGMENTS = "detect"
"""Of these the one that looks at segments."""
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


def keep(storage: TenantStore, decisions: tuple[Decision, ...], part: str = "") -> None:
    """Put a stage's decisions on record, and note them for the audit. All of moderation's come through here."""
    storage.save(f"{_PARTS}{part}.json" if part else NAME, records.dumps(records.write(_Record(decisions))), JSON)
    journal.note(*(_line(storage.stage, one) for one in decisions))


def _line(stage: str, one: Decision) -> Line:
    facts: dict[str, JsonValue] = {"picture": one.picture, "score": one.score, "threshold": one.threshold}
    return Line(MODERATION, one.action, f"stage:{stage}", one.check, facts | {"model": one.model, "digest": one.digest})


def of_stage(store: ObjectStore, tenant: str, job: str, stage: str) -> tuple[Decision, ...]:
    """None of a stage that has not looked, or whose record nobody can read."""
    return _read(store, keys.job(tenant, job, stage, NAME))


def of_segments(store: ObjectStore, tenant: str, job: str, stage: str) -> tuple[Decision, ...]:
    """Of all parts of a video that a stage has looked at; of the first thousand, that is."""
    prefix = keys.job(tenant, job, stage, _PARTS + "x")[:-1]
    found = [_read(store, entry.key) for entry in store.list(prefix).objects]
    return tuple(one for decisions in found for one in decisions)


def _read(store: ObjectStore, key: str) -> tuple[Decision, ...]:
    with suppress(ObjectNotFoundError, ValueError):
        return records.read(_Record, records.loads(store.get(key)[0])).decisions
    return ()


def of_job(store: ObjectStore, tenant: str, job: str) -> dict[str, tuple[Decision, ...]]:
    """All that is on record about a job, by stage."""
    found = {stage: of_stage(store, tenant, job, stage) for stage in STAGES if stage != SEGMENTS}
    found[SEGMENTS] = of_segments(store, tenant, job, SEGMENTS)
    return {stage: decisions for stage, decisions in found.items() if decisions}

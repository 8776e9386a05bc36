"""Jobs that wait for a person: the event that a stage did not answer, and what was decided about it.

    jobs/<job>/<stage>/hold.<digest>.json        the event, kept; <digest> tells apart what one job may wait for
    jobs/<job>/<stage>/review.<digest>.json      the verdict, written once: of two persons the first decides
    system/review/<tenant>.<job>.<digest>.json   where to look, removed when the verdict has been carried out

The hold comes before its entry and the verdict before what it leads to, so a crash anywhere leaves work that is done
again and never a job that nobody finds. Knows the store and the codec.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from shared import records
from shared.errors import ObjectNotFoundError, PreconditionFailedError, RequestError, WakeswapError
from shared.events import codec
from shared.events.event import Event
from shared.jobs.records import JSON
from shared.storage import keys
from shared.storage.protocol import ObjectStore

APPROVED, REJECTED = "approved", "rejected"
_HOLD, _REVIEW = "hold.", "review."
_INDEX = "review"
_DIGITS = 12
_MAX_FILES = 1000


class ReviewNeededError(WakeswapError):
    """A stage says that a person has to decide: the harness keeps the event, answers nothing, and the job waits.

    `context["checks"]` names what was found.
    """

    status = 409
    code = "review_needed"
    title = "Waiting for a person's decision"


class ReviewDecidedError(RequestError):
    """The other verdict was given before; `context`: `verdict`, `by`."""

    status = 409
    code = "review_decided"
    title = "Already decided"


@dataclass(frozen=True)
class Hold:
    tenant: str
    job: str
    stage: str
    checks: tuple[str, ...]
    """What a person has to decide about: `nsfw`, `words`."""
    since: str
    """RFC 3339, UTC."""
    event: str
    """The event in structured mode, as it came."""

    def original(self) -> Event:
        """Raises InvalidCloudEventError for a record that was changed."""
        text = self.event.encode()
        return codec.decode({"content-type": codec.STRUCTURED}, text, limit=len(text))

    @property
    def digest(self) -> str:
        return self.original().digest[:_DIGITS]


@dataclass(frozen=True)
class Review:
    verdict: str
    """`approved` or `rejected`."""
    by: str
    """Who decided."""
    at: str
    """RFC 3339, UTC."""
    note: str = ""
    checks: tuple[str, ...] = ()
    """What was decided about."""


@dataclass(frozen=True)
class _Entry:
    tenant: str
    job: str
    stage: str
    digest: str


def keep(store: ObjectStore, hold: Hold) -> None:
    """Put a job on hold; again for the same event changes nothing."""
    key = keys.job(hold.tenant, hold.job, hold.stage, f"{_HOLD}{hold.digest}.json")
    with suppress(PreconditionFailedError):
        store.create(key, records.dumps(records.write(hold)), content_type=JSON)
    if review(store, hold) is None:
        entry = _Entry(hold.tenant, hold.job, hold.stage, hold.digest)
        store.put(_index(entry), records.dumps(records.write(entry)), content_type=JSON)


def pending(store: ObjectStore) -> list[Hold]:
    """Every hold whose verdict has not been given and carried out, the longest wait first."""
    found, cursor = [], ""
    while True:
        page = store.list(keys.system(_INDEX, "x")[:-1], cursor=cursor)
        for info in page.objects:
            with suppress(ObjectNotFoundError):  # carried out meanwhile
                entry = records.read(_Entry, records.loads(store.get(info.key)[0]))
                name = f"{_HOLD}{entry.digest}.json"
                data, _ = store.get(keys.job(entry.tenant, entry.job, entry.stage, name))
                found.append(records.read(Hold, records.loads(data)))
        if not (cursor := page.cursor):
            return sorted(found, key=lambda hold: hold.since)


def decide(store: ObjectStore, hold: Hold, verdict: Review) -> Review:
    """The verdict that counts: this one, or the one that was given before."""
    key = _review(hold)
    with suppress(PreconditionFailedError):
        store.create(key, records.dumps(records.write(verdict)), content_type=JSON)
        return verdict
    return records.read(Review, records.loads(store.get(key)[0]))


def review(store: ObjectStore, hold: Hold) -> Review | None:
    with suppress(ObjectNotFoundError):
        return records.read(Review, records.loads(store.get(_review(hold))[0]))
    return None


def done(store: ObjectStore, hold: Hold) -> None:
    """The verdict has been carried out."""
    store.delete(_index(_Entry(hold.tenant, hold.job, hold.stage, hold.digest)))


def approved(store: ObjectStore, tenant: str, job: str, stages: tuple[str, ...]) -> frozenset[str]:
    """The checks that a person has let pass for this job."""
    found: set[str] = set()
    for stage in stages:
        prefix = keys.job(tenant, job, stage, _REVIEW)
        for info in store.list(prefix, limit=_MAX_FILES).objects:
            verdict = records.read(Review, records.loads(store.get(info.key)[0]))
            found.update(verdict.checks if verdict.verdict == APPROVED else ())
    return frozenset(found)


def waiting(names: list[str]) -> bool:
    """Whether a job with these files in its folder waits for a person."""
    held = {name for name in names if name.partition("/")[2].startswith(_HOLD)}
    return any(name.replace(f"/{_HOLD}", f"/{_REVIEW}") not in names for name in held)


def _review(hold: Hold) -> str:
    return keys.job(hold.tenant, hold.job, hold.stage, f"{_REVIEW}{hold.digest}.json")


def _index(entry: _Entry) -> str:
    return keys.system(_INDEX, f"{entry.tenant}.{entry.job}.{entry.digest}.json")

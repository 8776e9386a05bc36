"""What the broker remembers: events, one delivery per matching Trigger, and how each went.

An event and its deliveries are one transaction; so are the end of a delivery and the reply that it brought. Claims
belong to the process that holds the file: the next one finds them due at once, not counted as failed attempts.
Knows SQL and the rows, no HTTP and no delivery rules.
"""

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.delivery import Progress, State, Step
from infra.local.eventing.records import Attempt, Claim, HistoryEntry, Publication, Queue
from infra.local.eventing.writer import Writer

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY,
    broker TEXT NOT NULL, source TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, subject TEXT,
    attributes TEXT NOT NULL, data BLOB, ttl INTEGER NOT NULL, accepted REAL NOT NULL,
    UNIQUE (broker, source, id)
) STRICT;
CREATE INDEX IF NOT EXISTS events_subject ON events (subject);
CREATE INDEX IF NOT EXISTS events_id ON events (id);
CREATE INDEX IF NOT EXISTS events_accepted ON events (accepted);
CREATE TABLE IF NOT EXISTS deliveries (
    seq INTEGER PRIMARY KEY,
    event INTEGER NOT NULL REFERENCES events (seq) ON DELETE CASCADE,
    trigger_key TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting',
    failures INTEGER NOT NULL DEFAULT 0, sink_failures INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL, claimed INTEGER NOT NULL DEFAULT 0,
    started REAL, finished REAL,
    code INTEGER, answer TEXT NOT NULL DEFAULT '', destination TEXT NOT NULL DEFAULT '',
    UNIQUE (event, trigger_key)
) STRICT;
CREATE INDEX IF NOT EXISTS deliveries_ready ON deliveries (trigger_key, due) WHERE finished IS NULL AND claimed = 0;
CREATE INDEX IF NOT EXISTS deliveries_due ON deliveries (due) WHERE finished IS NULL AND claimed = 0;
"""

_CLAIM = """
UPDATE deliveries SET claimed = 1, started = CASE state WHEN 'waiting' THEN :now ELSE started END
WHERE seq IN (
    SELECT seq FROM deliveries
    WHERE trigger_key = :trigger AND finished IS NULL AND claimed = 0 AND due <= :now ORDER BY due, seq LIMIT :slots)
RETURNING seq
"""
_CLAIMED = """
SELECT d.seq, d.trigger_key, d.state, d.failures, d.sink_failures, d.code, d.answer, d.destination,
       e.broker, e.attributes, e.data, e.ttl
FROM deliveries d JOIN events e ON e.seq = d.event WHERE d.seq = ?
"""
_SETTLE = """
UPDATE deliveries SET claimed = 0, state = :state, failures = :failures, sink_failures = :sink_failures, due = :due,
    finished = :finished, code = coalesce(:code, code), answer = coalesce(:answer, answer),
    destination = coalesce(:destination, destination)
WHERE seq = :seq
"""
_QUEUES = """
SELECT trigger_key, sum(claimed), sum(claimed = 0 AND finished IS NULL AND state = 'waiting' AND failures = 0),
       sum(claimed = 0 AND finished IS NULL AND (state = 'burying' OR failures > 0)), sum(state = 'dead')
FROM deliveries GROUP BY trigger_key
"""
_HISTORY = """
SELECT broker, source, id, type, subject, accepted, trigger_key, state, failures, started, finished, code, answer,
       destination
FROM (
    SELECT e.*, e.seq AS event_seq, d.seq AS delivery_seq, d.trigger_key, d.state, coalesce(d.failures, 0) AS failures,
           d.started, d.finished, d.code, coalesce(d.answer, '') AS answer, coalesce(d.destination, '') AS destination
    FROM events e LEFT JOIN deliveries d ON d.event = e.seq
    WHERE :subject IS NULL OR e.subject = :subject ORDER BY e.seq DESC, d.seq DESC LIMIT :limit)
ORDER BY event_seq, delivery_seq
"""
_PRUNE = """
DELETE FROM events WHERE accepted < :finished_before
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event = events.seq AND d.finished IS NULL)
    AND (accepted < :dead_before
         OR NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.event = events.seq AND d.state IN ('dead', 'dropped')))
"""


class Store:
    """The broker's file. Every method waits for its transaction; StoreError where SQLite failed."""

    def __init__(self, path: Path) -> None:
        self._writer = Writer(path, _SCHEMA)

    async def open(self, triggers: Collection[str], now: float) -> tuple[int, int]:
        """Take the file; (claims of the last process that are due again, deliveries dropped with their Trigger).

        Everything open is due now: the clock may have been set back while no process ran.
        """
        await self._writer.open()

        def recover(db: sqlite3.Connection) -> tuple[int, int]:
            claims = db.execute("UPDATE deliveries SET claimed = 0 WHERE claimed = 1").rowcount
            db.execute("UPDATE deliveries SET due = ? WHERE finished IS NULL AND due > ?", (now, now))
            known = json.dumps(sorted(triggers))
            gone = db.execute(
                "UPDATE deliveries SET state = 'dropped', finished = ?, answer = 'the Trigger is gone' "
                "WHERE finished IS NULL AND trigger_key NOT IN (SELECT value FROM json_each(?))",
                (now, known),
            ).rowcount
            return claims, gone

        return await self._writer.run(recover)

    async def close(self) -> None:
        """Finish what waits and close the file."""
        await self._writer.close()

    async def publish(self, publication: Publication, now: float) -> bool:
        """Store the event and its deliveries; False (and nothing stored) where the broker already has it."""
        return await self._writer.run(lambda db: _insert(db, publication, now))

    async def claim(self, slots: Mapping[str, int], total: int, now: float) -> tuple[list[Claim], float | None]:
        """Take up to `slots` due deliveries per Trigger and `total` in all, Triggers served in the order given.

        Also tells when the next delivery that is not yet due will be.
        """

        def take(db: sqlite3.Connection) -> tuple[list[Claim], float | None]:
            taken: list[Claim] = []
            for trigger, free in slots.items():
                places = min(free, total - len(taken))
                rows = db.execute(_CLAIM, {"now": now, "trigger": trigger, "slots": places}).fetchall()
                taken += [_read_claim(db.execute(_CLAIMED, row).fetchone()) for row in rows]
            (due,) = db.execute(
                "SELECT min(due) FROM deliveries WHERE finished IS NULL AND claimed = 0 AND due > ?", (now,)
            ).fetchone()
            return taken, due

        return await self._writer.run(take, durable=False)

    async def settle(
        self, claim: Claim, step: Step, attempt: Attempt | None, reply: Publication | None, now: float
    ) -> None:
        """End one attempt: record the answer, the next step, and the reply if there is one, all or nothing."""
        progress = step.progress
        row = {
            "seq": claim.seq,
            "state": progress.state,
            "failures": progress.failures,
            "sink_failures": progress.sink_failures,
            "due": now + step.wait,
            "finished": None if progress.state in ("waiting", "burying") else now,
            "code": attempt.code if attempt else None,
            "answer": attempt.answer if attempt else None,
            "destination": attempt.destination if attempt else None,
        }

        def record(db: sqlite3.Connection) -> None:
            db.execute(_SETTLE, row)
            if reply is not None:
                _insert(db, reply, now)

        await self._writer.run(record)

    async def release(self, seqs: Sequence[int], due: float) -> None:
        """Give claims back untried."""
        rows = [(due, seq) for seq in seqs]
        await self._writer.run(
            lambda db: db.executemany("UPDATE deliveries SET claimed = 0, due = ? WHERE claimed = 1 AND seq = ?", rows)
        )

    async def shift(self, seconds: float) -> None:
        """Move the time at which open deliveries are due."""
        await self._writer.run(
            lambda db: db.execute("UPDATE deliveries SET due = due + ? WHERE finished IS NULL", (seconds,))
        )

    async def replay(self, event_id: str, triggers: Collection[str], now: float) -> int:
        """Make every given-up delivery of events with this id due again, as if never tried; how many."""

        def requeue(db: sqlite3.Connection) -> int:
            return db.execute(
                "UPDATE deliveries SET state = 'waiting', failures = 0, sink_failures = 0, due = ?, finished = NULL "
                "WHERE state IN ('dead', 'dropped') AND event IN (SELECT seq FROM events WHERE id = ?) "
                "AND trigger_key IN (SELECT value FROM json_each(?))",
                (now, event_id, json.dumps(sorted(triggers))),
            ).rowcount

        return await self._writer.run(requeue)

    async def history(self, subject: str | None, limit: int) -> list[HistoryEntry]:
        """The newest `limit` deliveries, oldest first; only those of events about `subject` where given."""
        rows = await self._writer.run(
            lambda db: db.execute(_HISTORY, {"subject": subject, "limit": limit}).fetchall(), durable=False
        )
        return [HistoryEntry(*row) for row in rows]

    async def queues(self) -> dict[str, Queue]:
        """Counts per Trigger that has or had deliveries."""
        rows = await self._writer.run(lambda db: db.execute(_QUEUES).fetchall(), durable=False)
        return {key: Queue(waiting, in_flight, retrying, dead) for key, in_flight, waiting, retrying, dead in rows}

    async def busy(self, now: float) -> bool:
        """True where a delivery is in flight or due."""
        sql = "SELECT EXISTS (SELECT 1 FROM deliveries WHERE finished IS NULL AND (claimed = 1 OR due <= ?))"
        return bool(await self._writer.run(lambda db: db.execute(sql, (now,)).fetchone()[0], durable=False))

    async def prune(self, finished_before: float, dead_before: float) -> int:
        """Forget finished events accepted before a time, those kept for replay before another; how many."""
        times = {"finished_before": finished_before, "dead_before": dead_before}
        return await self._writer.run(lambda db: db.execute(_PRUNE, times).rowcount)


def _insert(db: sqlite3.Connection, publication: Publication, now: float) -> bool:
    event = publication.event
    row = db.execute(
        "INSERT INTO events (broker, source, id, type, subject, attributes, data, ttl, accepted) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (broker, source, id) DO NOTHING RETURNING seq",
        (
            publication.broker,
            event.source,
            event.id,
            event.type,
            event.subject,
            json.dumps(dict(event.attributes)),
            event.data,
            publication.ttl,
            now,
        ),
    ).fetchone()
    if row is None:
        return False
    db.executemany(
        "INSERT INTO deliveries (event, trigger_key, due) VALUES (?, ?, ?)",
        [(row[0], trigger, now) for trigger in publication.triggers],
    )
    return True


def _read_claim(row: tuple[int, str, State, int, int, int | None, str, str, str, str, bytes | None, int]) -> Claim:
    seq, trigger, state, failures, sink_failures, code, answer, destination, broker, attributes, data, ttl = row
    event = CloudEvent(json.loads(attributes), data)
    publication = Publication(broker, event, ttl, (trigger,))
    return Claim(seq, trigger, Progress(state, failures, sink_failures), publication, code, answer, destination)

"""The store on a real file: atomic fan-out, claims, replies, replay, pruning, and the batches of its writer."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.eventing.delivery import Progress, Step
from infra.local.eventing.records import Attempt, Claim, Publication, Queue
from infra.local.eventing.store import Store
from infra.local.eventing.writer import StoreError, Writer

TRIGGERS = ("ns/a", "ns/b")
SLOTS = {"ns/a": 10, "ns/b": 10}
DONE = Step(Progress("done"))
DEAD = Step(Progress("dead", 1))
OK = Attempt(200, "", "http://a/")


def publication(event_id: str = "1", *, source: str = "/s", triggers: tuple[str, ...] = TRIGGERS) -> Publication:
    attributes = {"specversion": "1.0", "id": event_id, "source": source, "type": "t", "subject": f"job-{event_id}"}
    return Publication("ns/default", CloudEvent(attributes, b"\x00data"), 255, triggers)


def with_store(path: Path, body: Callable[[Store], Awaitable[None]], triggers: tuple[str, ...] = TRIGGERS) -> None:
    async def main() -> None:
        store = Store(path)
        await store.open(triggers, 0)
        try:
            await body(store)
        finally:
            await store.close()

    asyncio.run(main())


async def claim_all(store: Store, now: float = 100) -> list[Claim]:
    return (await store.claim(SLOTS, 99, now))[0]


def test_an_event_is_claimed_once_for_every_trigger_and_as_it_came(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        assert await store.publish(publication(), 1)
        claims = await claim_all(store)
        assert [claim.trigger for claim in claims] == ["ns/a", "ns/b"]
        assert claims[0].publication == publication(triggers=("ns/a",))
        assert claims[0].progress == Progress("waiting")
        assert await claim_all(store) == []

    with_store(tmp_path / "db", body)


def test_duplicates_are_told_by_source_and_id(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        assert await store.publish(publication(), 1)
        assert not await store.publish(publication(), 2)
        assert await store.publish(publication(source="/other"), 3)
        results = await asyncio.gather(*(store.publish(publication("2"), 4) for _ in range(20)))
        assert sorted(results) == [False] * 19 + [True]
        assert len(await claim_all(store)) == 6

    with_store(tmp_path / "db", body)


def test_slots_and_due_times_bound_a_claim(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        for number in range(5):
            await store.publish(publication(str(number), triggers=("ns/a",)), number)
        claims, due = await store.claim({"ns/a": 2}, 99, 2.5)
        assert [claim.publication.event.id for claim in claims] == ["0", "1"]
        assert due == 3
        assert [claim.publication.event.id for claim in (await store.claim({"ns/a": 9}, 99, 2.5))[0]] == ["2"]
        assert await store.claim({"ns/b": 9}, 99, 2.5) == ([], 3)

    with_store(tmp_path / "db", body)


def test_a_total_bounds_a_claim_without_starving_any_trigger(tmp_path: Path) -> None:
    triggers = tuple(f"ns/{number}" for number in range(40))

    async def body(store: Store) -> None:
        await store.publish(publication(triggers=("ns/39",)), 1)
        claims, _ = await store.claim(dict.fromkeys(triggers, 8), 16, 2)
        assert [claim.trigger for claim in claims] == ["ns/39"]
        await store.publish(publication("2", triggers=triggers), 3)
        assert len((await store.claim(dict.fromkeys(triggers, 8), 16, 4))[0]) == 16

    with_store(tmp_path / "db", body, triggers)


def test_a_retry_waits_for_its_time_and_keeps_its_count(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        await store.publish(publication(triggers=("ns/a",)), 1)
        (claim,) = await claim_all(store, 10)
        await store.settle(claim, Step(Progress("waiting", 1), 5.0), Attempt(503, "busy", "http://a/"), None, 11)
        assert await store.claim(SLOTS, 99, 12) == ([], 16)
        assert (await store.queues())["ns/a"] == Queue(retrying=1)
        (again,) = await claim_all(store, 16)
        assert again.progress == Progress("waiting", 1)
        assert (again.code, again.answer, again.destination) == (503, "busy", "http://a/")

    with_store(tmp_path / "db", body)


def test_a_reply_is_stored_with_the_end_of_its_delivery_and_only_once(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        await store.publish(publication(triggers=("ns/a", "ns/b")), 1)
        first, second = await claim_all(store)
        reply = publication("reply", triggers=("ns/b",))
        await store.settle(first, DONE, OK, reply, 101)
        await store.settle(second, DONE, OK, reply, 102)
        claims = await claim_all(store, 103)
        assert [(claim.trigger, claim.publication.event.id) for claim in claims] == [("ns/b", "reply")]

    with_store(tmp_path / "db", body)


def test_a_reply_that_cannot_be_stored_leaves_the_delivery_open(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        await store.publish(publication(triggers=("ns/a",)), 1)
        (claim,) = await claim_all(store)
        broken = Publication("ns/default", CloudEvent({"id": "\ud800", "source": "/s", "type": "t"}), 1, ())
        with pytest.raises(UnicodeEncodeError):
            await store.settle(claim, DONE, OK, broken, 101)
        assert (await store.queues())["ns/a"] == Queue(in_flight=1)

    with_store(tmp_path / "db", body)


def test_claims_of_a_dead_process_are_due_at_once_and_uncounted(tmp_path: Path) -> None:
    async def first(store: Store) -> None:
        await store.publish(publication(), 1)
        assert len(await claim_all(store)) == 2

    async def second(store: Store) -> None:
        assert [claim.progress for claim in await claim_all(store)] == [Progress("waiting"), Progress("waiting")]

    with_store(tmp_path / "db", first)
    with_store(tmp_path / "db", second)


def test_deliveries_of_a_trigger_that_is_gone_are_dropped(tmp_path: Path) -> None:
    async def first(store: Store) -> None:
        await store.publish(publication(), 1)

    async def second(store: Store) -> None:
        assert [claim.trigger for claim in await claim_all(store)] == ["ns/b"]
        gone = next(entry for entry in await store.history(None, 10) if entry.trigger == "ns/a")
        assert (gone.state, gone.answer) == ("dropped", "the Trigger is gone")

    with_store(tmp_path / "db", first)
    with_store(tmp_path / "db", second, ("ns/b",))


def test_released_claims_are_due_again(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        await store.publish(publication(triggers=("ns/a",)), 1)
        (claim,) = await claim_all(store, 10)
        await store.release([claim.seq], 20)
        assert await store.claim(SLOTS, 99, 19) == ([], 20)
        assert await claim_all(store, 20) == [claim]

    with_store(tmp_path / "db", body)


def test_replay_starts_given_up_deliveries_from_the_beginning(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        await store.publish(publication(), 1)
        dead, done = await claim_all(store)
        await store.settle(dead, DEAD, Attempt(422, "no face", "http://a/"), None, 101)
        await store.settle(done, DONE, OK, None, 101)
        assert (await store.queues())["ns/a"] == Queue(dead=1)
        assert await store.replay("unknown", TRIGGERS, 102) == 0
        assert await store.replay("1", TRIGGERS, 102) == 1
        assert await store.replay("1", TRIGGERS, 102) == 0
        (again,) = await claim_all(store, 102)
        assert (again.trigger, again.progress) == ("ns/a", Progress("waiting"))

    with_store(tmp_path / "db", body)


def test_history_tells_every_delivery_and_events_nobody_wanted(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        await store.publish(publication("1", triggers=("ns/a",)), 1)
        await store.publish(publication("2", triggers=()), 2)
        (claim,) = await claim_all(store, 3)
        await store.settle(claim, DONE, OK, None, 4)
        entries = await store.history(None, 10)
        assert [(e.id, e.trigger, e.state, e.code) for e in entries] == [
            ("1", "ns/a", "done", 200),
            ("2", None, None, None),
        ]
        assert (entries[0].accepted, entries[0].started, entries[0].finished) == (1, 3, 4)
        assert [entry.id for entry in await store.history("job-2", 10)] == ["2"]
        assert [entry.id for entry in await store.history(None, 1)] == ["2"]

    with_store(tmp_path / "db", body)


def test_busy_counts_what_is_due_or_in_flight(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        assert not await store.busy(0)
        await store.publish(publication(triggers=("ns/a",)), 10)
        assert not await store.busy(9)
        assert await store.busy(10)
        (claim,) = await claim_all(store, 10)
        assert await store.busy(9)
        await store.settle(claim, DONE, OK, None, 11)
        assert not await store.busy(99)

    with_store(tmp_path / "db", body)


def test_prune_keeps_what_is_open_and_what_can_be_replayed(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        for number in ("done", "dead", "open"):
            await store.publish(publication(number, triggers=("ns/a",)), 1)
        done, dead, waiting = await claim_all(store)
        await store.settle(done, DONE, OK, None, 101)
        await store.settle(dead, DEAD, OK, None, 101)
        await store.release([waiting.seq], 102)
        assert await store.prune(finished_before=1, dead_before=1) == 0
        assert await store.prune(finished_before=2, dead_before=1) == 1
        assert [entry.id for entry in await store.history(None, 10)] == ["dead", "open"]
        assert await store.prune(finished_before=2, dead_before=2) == 1
        assert [entry.id for entry in await store.history(None, 10)] == ["open"]

    with_store(tmp_path / "db", body)


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    async def body(store: Store) -> None:
        other = Store(tmp_path / "db")
        with pytest.raises(StoreError, match="in use by another process"):
            await other.open(TRIGGERS, 0)
        await other.close()
        assert await store.publish(publication(), 1)

    with_store(tmp_path / "db", body)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "db").write_bytes(b"not a database at all" * 100)

    async def main() -> None:
        store = Store(tmp_path / "db")
        with pytest.raises(StoreError, match="not a database"):
            await store.open(TRIGGERS, 0)
        await store.close()
        with pytest.raises(StoreError, match="closed"):
            await store.publish(publication(), 1)

    asyncio.run(main())


def test_operations_that_wait_together_share_a_commit_but_not_a_failure(tmp_path: Path) -> None:
    async def main() -> None:
        writer = Writer(tmp_path / "db", "CREATE TABLE t (value INTEGER UNIQUE);")
        await writer.open()

        def put(value: object) -> Callable[[sqlite3.Connection], int]:
            return lambda db: db.execute("INSERT INTO t VALUES (?)", (value,)).rowcount

        results = await asyncio.gather(
            *(writer.run(put(value)) for value in (1, 2, 1, 3)), writer.run(put(object())), return_exceptions=True
        )
        assert results[:2] == [1, 1]
        assert isinstance(results[2], StoreError)
        assert isinstance(results[2].__cause__, sqlite3.IntegrityError)
        assert results[3] == 1
        assert isinstance(results[4], StoreError)
        cancelled = asyncio.create_task(writer.run(put(4)))
        await asyncio.sleep(0)
        cancelled.cancel()
        assert await writer.run(put(5)) == 1
        await writer.close()

    asyncio.run(main())
    with closing(sqlite3.connect(tmp_path / "db")) as connection:
        assert [row[0] for row in connection.execute("SELECT value FROM t ORDER BY value")] == [1, 2, 3, 4, 5]


def test_commits_are_durable_and_waiting_operations_are_grouped(tmp_path: Path) -> None:
    async def main() -> tuple[str, list[int]]:
        writer = Writer(tmp_path / "db", "CREATE TABLE t (value INTEGER);")
        await writer.open()
        mode = await writer.run(lambda db: db.execute("PRAGMA journal_mode").fetchone()[0])
        level = [await writer.run(synchronous), await writer.run(synchronous, durable=False)]
        await writer.close()
        return str(mode), level

    def synchronous(db: sqlite3.Connection) -> int:
        return int(db.execute("PRAGMA synchronous").fetchone()[0])

    assert asyncio.run(main()) == ("wal", [2, 1])


def test_after_a_restart_everything_open_is_due_whatever_the_clock_said_before(tmp_path: Path) -> None:
    async def first(store: Store) -> None:
        await store.publish(publication(), 1_000_000)

    async def second(store: Store) -> None:
        assert len(await claim_all(store, now=0)) == 2

    with_store(tmp_path / "db", first)
    with_store(tmp_path / "db", second)


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_removed_takes_no_more(tmp_path: Path, replaced: bool) -> None:
    """SQLite alone would acknowledge, and all would be gone with the process."""
    path = tmp_path / "db"

    async def body(store: Store) -> None:
        await store.publish(publication("1"), 1)
        path.unlink()
        if replaced:
            path.write_bytes(b"")
        with pytest.raises(StoreError, match="was removed or replaced while it was in use"):
            await store.publish(publication("2"), 1)

    with_store(path, body)


def test_a_file_that_is_gone_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body(store: Store) -> None:
        await store.publish(publication("1"), 1)

    with_store(tmp_path / "db", body)
    assert caplog.text == ""
    (tmp_path / "db").unlink()
    with_store(tmp_path / "db", body)
    assert "db is gone: what was on its way" in caplog.text


@pytest.mark.parametrize("offset", [0, 8192, 40_000])
def test_a_damaged_file_is_refused_with_advice(tmp_path: Path, offset: int) -> None:
    """In the header and in the middle, where only a check finds it."""

    async def fill(store: Store) -> None:
        for number in range(200):
            await store.publish(publication(str(number)), 1)

    async def nothing(_: Store) -> None:
        raise AssertionError("opened a damaged file")

    path = tmp_path / "db"
    with_store(path, fill)
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(b"\xa5" * 4096)
    with pytest.raises(StoreError, match=r"is damaged .*move it away"):
        with_store(path, nothing)
    path.unlink()
    with_store(path, fill)  # the lock is free again

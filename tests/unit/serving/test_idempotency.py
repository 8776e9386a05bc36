"""One event, one piece of work: leases, takeover, heartbeat, replay, on a real folder store."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from shared.errors import BusyError, PreconditionFailedError, StoreUnavailableError
from shared.serving.answers import Reply
from shared.serving.idempotency import Lease, Ledger
from shared.serving.record import Record
from shared.storage.local import LocalStore
from shared.storage.protocol import ObjectInfo
from tests.unit.serving.support import until

KEY = "system/work/test.json"
REPLY = Reply(200, (("content-type", "application/json"), ("ce-id", "r-1")), b'{"a": "\xc3\xa9\x00"}')


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def taken(ledger: Ledger) -> Lease:
    lease = ledger.take(KEY)
    assert isinstance(lease, Lease)
    return lease


def stored(store: LocalStore) -> Record:
    return Record.decode(store.get(KEY)[0])


def test_a_live_lease_is_busy_and_an_expired_one_is_taken_over(store: LocalStore, clock: Clock) -> None:
    ledger = Ledger(store, 15, clock)
    taken(ledger)
    clock.time += 14.9
    with pytest.raises(BusyError):
        ledger.take(KEY)
    clock.time += 0.2
    assert isinstance(ledger.take(KEY), Lease)


def test_a_lease_from_before_the_clock_was_set_back_holds_nobody_up(store: LocalStore, clock: Clock) -> None:
    ledger = Ledger(store, 15, clock)
    before = taken(ledger)
    clock.time -= 14  # machines may disagree by a part of a lease
    with pytest.raises(BusyError):
        ledger.take(KEY)
    clock.time -= 3600
    successor = taken(ledger)
    with pytest.raises(BusyError):
        before.finish(Reply(200, (), b"late"))
    assert successor.finish(REPLY) == REPLY


def test_the_reply_is_given_again_byte_for_byte(store: LocalStore, clock: Clock) -> None:
    ledger = Ledger(store, 15, clock)
    assert taken(ledger).finish(REPLY, woke=1.25, device={"cpu": 0.5}) == REPLY
    clock.time += 10_000
    assert ledger.take(KEY) == REPLY
    record = stored(store)
    assert (record.started, record.finished, record.woke) == (1000.0, 1000.0, 1.25)
    assert record.device == {"cpu": 0.5}


def test_a_released_lease_can_be_taken_at_once(store: LocalStore, clock: Clock) -> None:
    ledger = Ledger(store, 15, clock)
    taken(ledger).release()
    assert isinstance(ledger.take(KEY), Lease)


@pytest.mark.parametrize("expired", [False, True])
def test_one_of_many_takers_wins(store: LocalStore, expired: bool) -> None:
    """On a free key and on an expired lease, with real threads on the real conditional writes."""
    ledger, gate, outcomes = Ledger(store, 15), threading.Barrier(8), []
    if expired:
        store.put(KEY, Record("gone", expires=1.0).encode())

    def attempt() -> None:
        gate.wait()
        try:
            ledger.take(KEY)
            outcomes.append("won")
        except BusyError:
            outcomes.append("busy")

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["busy"] * 7 + ["won"]


def test_whoever_was_taken_over_does_not_overwrite(store: LocalStore, clock: Clock) -> None:
    ledger = Ledger(store, 15, clock)
    asleep = taken(ledger)
    clock.time += 20
    successor = taken(ledger)
    with pytest.raises(BusyError):
        asleep.renew()
    with pytest.raises(BusyError):
        asleep.finish(Reply(200, (), b"late"))
    asleep.release()
    with pytest.raises(BusyError):  # the successor's lease is untouched
        ledger.take(KEY)
    assert successor.finish(REPLY) == REPLY
    assert asleep.finish(Reply(200, (), b"late")) == REPLY


@pytest.mark.parametrize("late", ["renew", "release"])
def test_a_finished_record_is_never_written_over(store: LocalStore, clock: Clock, late: str) -> None:
    """Whoever was taken for dead wakes in its heartbeat, and only then comes to its own end."""
    ledger = Ledger(store, 15, clock)
    asleep = taken(ledger)
    clock.time += 20
    taken(ledger).finish(REPLY)
    kept = store.get(KEY)
    getattr(asleep, late)()
    assert asleep.finish(Reply(200, (), b"late")) == REPLY
    asleep.release()
    assert store.get(KEY) == kept


def test_the_heartbeat_keeps_a_lease_past_its_length(store: LocalStore) -> None:
    ledger = Ledger(store, 0.15)
    lease = taken(ledger)
    first = stored(store).expires
    with lease.kept():
        until(lambda: stored(store).expires > first + 0.2)
        with pytest.raises(BusyError):
            ledger.take(KEY)
    assert lease.finish(REPLY) == REPLY


def test_the_heartbeat_survives_a_store_that_fails_for_a_moment(tmp_path: Path) -> None:
    store = Flaky(tmp_path)
    ledger = Ledger(store, 0.15)
    lease = taken(ledger)
    with lease.kept():
        store.failures = 2
        until(lambda: store.failures == 0)
        first = stored(store).expires
        until(lambda: stored(store).expires > first)
    assert lease.finish(REPLY) == REPLY


def test_releasing_never_fails(tmp_path: Path) -> None:
    store = Flaky(tmp_path)
    lease = taken(Ledger(store, 15))
    store.failures = 1
    lease.release()
    assert store.failures == 0


def test_a_write_whose_answer_was_lost_is_still_ours(tmp_path: Path) -> None:
    """The store wrote, the answer was lost, the client library tried again and met its own object."""
    store = Forgetful(tmp_path)
    ledger = Ledger(store, 15)
    lease = taken(ledger)
    lease.renew()
    assert lease.finish(REPLY) == REPLY
    assert ledger.take(KEY) == REPLY


def test_a_damaged_record_is_worked_on_again(store: LocalStore) -> None:
    store.put(KEY, b'{"owner": ')
    assert isinstance(Ledger(store, 15).take(KEY), Lease)


class Flaky(LocalStore):
    """Fails the next `failures` conditional writes."""

    failures = 0

    def replace(self, key: str, data: bytes, etag: str, *, content_type: str = "", **_: object) -> ObjectInfo:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError
        return super().replace(key, data, etag, content_type=content_type)


class Forgetful(LocalStore):
    """Does every conditional write and then says that its condition failed; every second replace is believed."""

    replaced = 0

    def create(self, key: str, data: bytes, *, content_type: str = "", **_: object) -> ObjectInfo:
        super().create(key, data, content_type=content_type)
        raise PreconditionFailedError

    def replace(self, key: str, data: bytes, etag: str, *, content_type: str = "", **_: object) -> ObjectInfo:
        info = super().replace(key, data, etag, content_type=content_type)
        self.replaced += 1
        if self.replaced % 2:
            raise PreconditionFailedError
        return info

"""SEC-07: any number of takers at once, on a folder and on a real S3 server: as many pass as there are slots."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.errors import PreconditionFailedError, QuotaExceededError, TransientError
from shared.jobs import slots
from shared.storage import keys
from shared.storage.local import LocalStore
from shared.storage.protocol import ObjectInfo, ObjectStore
from shared.tenancy.tenant import Policy, Tenant
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed

NOW = 1_800_000_000.0
ROUNDS, TAKERS, QUOTA = 10, 50, 5
KEY = keys.slots("demo")


def tenant(**limits: int) -> Tenant:
    return Tenant("demo", Policy(**{"max_concurrent": QUOTA, "jobs_per_minute": 1000, **limits}))  # type: ignore[arg-type]


def take(store: ObjectStore, job: str, owner: Tenant | None = None, *, batch: bool = False, now: float = NOW) -> bool:
    """Whether the slot is a new one."""
    return slots.take(store, owner or tenant(), job, batch=batch, now=now, seconds=900).fresh


def at_once(jobs: list[str], store: ObjectStore, owner: Tenant) -> list[str]:
    """Those of the jobs, taken at the same moment, that got a slot."""
    barrier = threading.Barrier(len(jobs))

    def attempt(job: str) -> bool:
        barrier.wait()
        try:
            take(store, job, owner)
        except QuotaExceededError:
            return False
        return True

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [job for job, won in zip(jobs, pool.map(attempt, jobs), strict=True) if won]


class RaceTests:
    def test_sec_07_fifty_at_once_on_a_quota_of_five(self, store: ObjectStore) -> None:
        for number in range(ROUNDS):
            won = at_once([f"job-{number}-{index:04}" for index in range(TAKERS)], store, tenant())
            assert len(won) == QUOTA
            with ThreadPoolExecutor(2 * QUOTA) as pool:  # each job's end is told twice
                list(pool.map(lambda job: slots.release(store, "demo", job), won * 2))
            assert b'"slots":[]' in store.get(KEY)[0]

    def test_sec_07_one_slot_and_thirty_two_at_once(self, store: ObjectStore) -> None:
        assert len(at_once([f"job-{index:08}" for index in range(32)], store, tenant(max_concurrent=1))) == 1

    def test_a_minute_is_not_overrun_either(self, store: ObjectStore) -> None:
        owner = tenant(max_concurrent=1000, jobs_per_minute=5)
        assert len(at_once([f"job-{index:08}" for index in range(20)], store, owner)) == 5

    def test_sec_07_one_job_asked_for_by_all_has_one_slot(self, store: ObjectStore) -> None:
        jobs = ["job-00000001"] * 16
        assert at_once(jobs, store, tenant(max_concurrent=1, jobs_per_minute=1)) == jobs


class TestOnAFolder(RaceTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return LocalStore(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    server.start()
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.timeout(600)
class TestOnS3(RaceTests):
    @pytest.fixture
    def store(self, server: Seaweed, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
        import boto3

        from shared.storage.s3 import S3Store

        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        boto3.setup_default_session()
        client = boto3.client("s3")
        if "wakeswap" not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket="wakeswap")
        store = S3Store("wakeswap")
        store.delete(KEY)
        return store


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return LocalStore(tmp_path)


def test_a_refusal_says_which_limit_and_when_and_writes_nothing(store: ObjectStore) -> None:
    take(store, "job-00000001", tenant(max_concurrent=1))
    before = store.head(KEY)
    with pytest.raises(QuotaExceededError) as caught:
        take(store, "job-00000002", tenant(max_concurrent=1))
    assert caught.value.context == {"limit": "max_concurrent", "value": 1}
    assert caught.value.retry_after == 5
    assert store.head(KEY) == before
    with pytest.raises(QuotaExceededError) as caught:
        take(store, "job-00000002", tenant(jobs_per_minute=1), now=NOW + 13)
    assert caught.value.context == {"limit": "jobs_per_minute", "value": 1}
    assert caught.value.retry_after == 60 - int(NOW + 13) % 60


def test_renewing_writes_only_when_half_is_gone(store: ObjectStore) -> None:
    take(store, "job-00000001")
    before = store.head(KEY).etag
    assert slots.renew(store, "demo", "job-00000001", now=NOW + 400, seconds=900) == NOW + 900
    assert store.head(KEY).etag == before
    assert slots.renew(store, "demo", "job-00000001", now=NOW + 500, seconds=900) == NOW + 1400
    assert slots.renew(store, "demo", "job-00000002", now=NOW, seconds=900) == 0
    assert slots.renew(store, "acme", "job-00000002", now=NOW, seconds=900) == 0


@pytest.mark.parametrize("damage", [b"", b"\x00\x00", b"[]", b'{"slots":[{"job":1}]}'])
def test_a_record_that_cannot_be_read_begins_anew(store: ObjectStore, damage: bytes) -> None:
    store.put(KEY, damage)
    assert take(store, "job-00000001")
    assert not take(store, "job-00000001")


class Contended(LocalStore):
    """Somebody else is always faster."""

    def replace(self, *args: object, **more: object) -> ObjectInfo:
        raise PreconditionFailedError

    def create(self, *args: object, **more: object) -> ObjectInfo:
        raise PreconditionFailedError


def test_whoever_never_gets_its_turn_is_told_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "PATIENCE", 0.2)
    with pytest.raises(TransientError) as caught:
        take(Contended(tmp_path), "job-00000001")
    assert caught.value.status == 503


def test_a_keeper_looks_once_in_half_a_lease(store: ObjectStore) -> None:
    import time

    slots.take(store, tenant(), "job-00000001", batch=False, now=time.time() - 600, seconds=900)
    keeper = slots.Keeper(store, "demo", "job-00000001", 900)
    keeper()
    kept = store.head(KEY).etag
    store.delete(KEY)  # a second look would fail to find the slot, and a write would bring it back
    keeper()
    assert not store.list(KEY).objects
    assert kept

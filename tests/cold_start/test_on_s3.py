"""Leases and ends on a real S3 server: the same conditional writes decide as on a folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from shared.errors import BusyError
from shared.events.payloads import Result
from shared.serving.answers import Reply
from shared.serving.idempotency import Lease, Ledger
from shared.serving.outcome import Outcomes
from shared.storage.protocol import ObjectStore
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed
from tests.unit.serving.support import JOB, PICTURE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seaweed]:
    server = Seaweed(tmp_path_factory.mktemp("seaweed"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def store(server: Seaweed, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
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
    return S3Store("wakeswap")


@pytest.mark.parametrize("seconds", [15.0, -1.0])
def test_one_of_many_takers_wins_and_the_others_replay(store: ObjectStore, seconds: float) -> None:
    """On a free key, and on a lease that has run out already."""
    key = f"system/work/s3/{seconds}.json"
    if seconds < 0:
        assert isinstance(Ledger(store, seconds).take(key), Lease)
    ledger, gate = Ledger(store, 15.0), threading.Barrier(6)
    won: list[Lease] = []
    busy: list[BusyError] = []

    def attempt() -> None:
        gate.wait()
        try:
            taken = ledger.take(key)
        except BusyError as error:
            busy.append(error)
        else:
            assert isinstance(taken, Lease)
            won.append(taken)

    threads = [threading.Thread(target=attempt) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(busy)) == (1, 5)
    reply = Reply(200, (("ce-id", "r"),), b"\x00\xff")
    won[0].renew()
    won[0].finish(reply)
    assert ledger.take(key) == reply


def test_a_job_ends_once(store: ObjectStore) -> None:
    result = Result(JOB, PICTURE, 1, 1, (), "https://x", "2030-01-01T00:00:00Z")
    outcomes = Outcomes(store, "publish")
    assert outcomes.settle("demo", result, "c1")
    assert outcomes.settle("demo", result, "c1")
    assert not outcomes.settle("demo", result, "c2")

"""job.json: one record counts, whoever writes at the same time and whatever a power cut left."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from shared.jobs import records
from shared.jobs.records import JobRecord
from shared.storage import keys
from shared.storage.local import LocalStore
from tests.unit.serving.support import JOB, job

RECORD = JobRecord(job(), request="r")


@pytest.mark.parametrize("damage", [None, b"", b"\x00" * 30, b"{}", b"[1]"])
def test_of_many_writers_over_nothing_or_a_damaged_record_one_counts(tmp_path: Path, damage: bytes | None) -> None:
    store, gate = LocalStore(tmp_path), threading.Barrier(6)
    if damage is not None:
        store.put(keys.job("demo", JOB, "job.json"), damage)
        assert records.find(store, "demo", JOB) is None

    def write(number: int) -> JobRecord:
        gate.wait()
        return records.create(store, "demo", replace(RECORD, request=str(number)))

    with ThreadPoolExecutor(6) as pool:
        given = set(pool.map(write, range(6)))
    assert given == {records.find(store, "demo", JOB)}


def test_deleting_stays_with_one_job(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    longer = store.put(keys.result("demo", f"{JOB}2.png"), b"another job's").key
    records.create(store, "demo", RECORD)
    store.put(keys.result("demo", f"{JOB}.png"), b"ours")
    records.cancel(store, "demo", JOB, 0.0)
    assert [info.key for info in store.list("tenants/demo/results/").objects] == [longer]

"""A tenant's file changes on disk, swapped as Kubernetes does it, while intake under gunicorn answers requests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import pytest

from shared.storage.local import LocalStore
from shared.tenancy import api_keys
from shared.tenancy.api_keys import ApiKey
from tests.services.process import StageProcess, exchange, listening
from tests.unit.jobs.world import picture
from tests.unit.serving.support import until
from tests.unit.serving.test_emitter import broker
from tests.unit.tenancy.files import Mounted, with_keys

pytestmark = pytest.mark.slow

PATIENCE = 60.0
CLIENTS = 4
WITHOUT_LIMITS = {"WAKESWAP_RATE_PER_KEY": "0", "WAKESWAP_RATE_PER_ADDRESS": "0", "WAKESWAP_AUTH_FAILURES": "0"}


@dataclass(frozen=True)
class Seen:
    begun: float
    ended: float
    status: int
    code: str


@contextmanager
def intake(root: Path, tenants: Path) -> Iterator[StageProcess]:
    store = LocalStore(root / "objects")
    for name, shade in (("s.jpg", 1), ("t.jpg", 2)):
        store.put(f"tenants/acme/inbox/{name}", picture(shade))
    with broker() as sink, listening() as listener:
        settings = {"WAKESWAP_TENANTS": "", "WAKESWAP_TENANTS_FOLDER": str(tenants), "K_SINK": sink.address}
        settings |= {"WAKESWAP_CONCURRENCY": str(CLIENTS), **WITHOUT_LIMITS}
        process = StageProcess("intake", root, listener, package="functions", **settings)
        try:
            process.wait_ready(PATIENCE)
            yield process
        finally:
            process.kill()


def submit(process: StageProcess, key: str) -> Seen:
    """Ask for one and the same job again."""
    body = json.dumps({"source": "s.jpg", "target": "t.jpg"}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Idempotency-Key": "one"}
    begun = time.monotonic()
    with closing(process.connect()) as connection:
        answer = exchange(connection, "POST", "/v1/jobs", body, headers)
    return Seen(begun, time.monotonic(), answer.status, "" if answer.status < 300 else answer.code)


class Clients:
    """Ask without a pause, several at a time, until told to stop."""

    def __init__(self, process: StageProcess, key: str) -> None:
        self.seen: list[Seen] = []
        self._process, self._key = process, key
        self._over = Event()

    def run(self) -> None:
        while not self._over.is_set():
            self.seen.append(submit(self._process, self._key))

    def stop(self) -> None:
        self._over.set()

    def wait_for(self, status: int, code: str) -> float:
        """Until every client in turn gets this answer; when the first one got it."""
        start = len(self.seen)

        def wanted() -> list[Seen]:
            return [one for one in self.seen[start:] if (one.status, one.code) == (status, code)]

        until(lambda: len(wanted()) > 3 * CLIENTS, PATIENCE)
        return wanted()[0].ended


def of_acme(*keys: ApiKey, **policy: object) -> dict[str, str]:
    return {"acme.yaml": with_keys(*keys, **policy)}


def test_the_next_request_follows_a_changed_policy_and_none_fails(tmp_path: Path) -> None:
    key, kept = api_keys.make(time.time())
    mounted = Mounted(tmp_path / "tenants", of_acme(kept))
    with intake(tmp_path, mounted.root) as process, ThreadPoolExecutor(CLIENTS) as threads:
        clients = Clients(process, key)
        running = [threads.submit(clients.run) for _ in range(CLIENTS)]
        try:
            clients.wait_for(202, "")
            mounted.swap(of_acme(kept, swappers=["other"]))
            forbidden = clients.wait_for(403, "not_allowed")
            mounted.swap({"acme.yaml": "policy: {swapper: [mesh]}"})
            until(lambda: "its tenant stays as it was: policy.swapper: Unknown field." in process.log(), PATIENCE)
            broken = time.monotonic()
            clients.wait_for(403, "not_allowed")
            metrics = process.call("GET", "/metrics").body.decode()
            mounted.swap(of_acme(kept, swappers=["other", "mesh"]))
            allowed = clients.wait_for(202, "")
        finally:
            clients.stop()
        for one in running:
            one.result()
    assert "wakeswap_tenant_files_unusable 1.0" in metrics
    assert {(one.status, one.code) for one in clients.seen} == {(202, ""), (403, "not_allowed")}, "none failed"
    after = [one.status for one in clients.seen if one.begun > forbidden and one.ended < broken]
    assert set(after) == {403}, "once a request followed the new policy, every later one does"
    assert {one.status for one in clients.seen if one.begun > allowed} == {202}
    assert process.log().count("Booting worker") == 1
    assert "Traceback" not in process.log()


def come_to(process: StageProcess, key: str, status: int) -> None:
    until(lambda: submit(process, key).status == status, PATIENCE)


def test_keys_change_while_a_process_runs(tmp_path: Path) -> None:
    now = time.time()
    (old, old_kept), (new, new_kept) = api_keys.make(now), api_keys.make(now)
    mounted = Mounted(tmp_path / "tenants", {})
    with intake(tmp_path, mounted.root) as process:
        assert submit(process, old).code == "unauthorized"
        mounted.swap(of_acme(old_kept))
        come_to(process, old, 202)
        mounted.swap(of_acme(old_kept, new_kept))
        come_to(process, new, 202)
        assert submit(process, old).status == 202, "two keys side by side"
        mounted.swap(of_acme(new_kept))
        come_to(process, old, 401)
        assert submit(process, new).status == 202
        mounted.swap({})
        come_to(process, new, 401)
        for key in (old, new):
            assert key[12:] not in process.log()

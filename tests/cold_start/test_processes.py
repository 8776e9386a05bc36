"""The harness under gunicorn with real signals: cold start, stop, crash, impatient senders, many senders."""

from __future__ import annotations

import json
import os
import signal
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared.storage import keys
from shared.storage.local import LocalStore
from tests.services.process import StageProcess, listening, running, send
from tests.unit.serving.support import JOB, event, job, until

pytestmark = pytest.mark.slow


def marks(root: Path, kind: str, job_id: str = JOB, stage: str = "slow") -> int:
    """How often a stage started, or ended, its work."""
    store = LocalStore(root / "objects")
    prefix = keys.job("demo", job_id) + f"{stage}/{kind}."
    return len(store.list(prefix).objects)


def test_cold_01_probes_tell_the_truth_while_models_load(tmp_path: Path) -> None:
    with running("heavy", tmp_path, WARM_SECONDS="3") as process:
        early = process.deliver(event())
        assert (early.status, early.code, early.headers["Retry-After"]) == (503, "model_loading", "1")
        seen = set()
        while (ready := process.readiness().status) != 200:
            seen.add((ready, process.call("GET", "/health/liveness").status))
            time.sleep(0.1)
        assert seen == {(503, 200)}
        assert process.deliver(event()).status == 200
        assert process.log().count('"message": "loaded"') == 1


def test_cold_06_a_process_waits_for_the_gpu_that_another_holds(tmp_path: Path) -> None:
    """Not ready and alive, for the reason that is the true one, in one process; then ready, and it works."""
    held = tmp_path / "held"
    held.touch()
    with running("crowded", tmp_path, HELD=str(held), WAKESWAP_GPU_WAIT_SECONDS="600") as process:
        until(lambda: process.readiness().code == "gpu_unavailable")
        assert process.call("GET", "/health/liveness").status == 200
        refused = process.deliver(event())
        assert (refused.status, refused.code) == (503, "gpu_unavailable")
        assert int(refused.headers["Retry-After"]) > 0
        held.unlink()
        process.wait_ready()
        assert process.deliver(event()).status == 200
        assert process.log().count("Booting worker") == 1, "no crash, no restart"


def test_cold_05_a_long_load_and_a_long_job_are_not_killed(tmp_path: Path) -> None:
    """The load and the job are longer than gunicorn's default timeout of 30 s would allow together with a restart."""
    with running("heavy", tmp_path, WARM_SECONDS="33") as loading, running("slow", tmp_path) as working:
        with ThreadPoolExecutor() as threads:
            long = threads.submit(working.deliver, event(job("33")))
            loading.wait_ready(60)
            assert loading.deliver(event()).status == 200
            assert long.result().status == 200
        for process in (loading, working):
            assert "WORKER TIMEOUT" not in process.log()
            assert process.log().count("Booting worker") == 1


def test_probes_and_wake_answer_while_every_slot_works(tmp_path: Path) -> None:
    with running("slow", tmp_path, WAKESWAP_CONCURRENCY="2") as process, ThreadPoolExecutor() as threads:
        process.wait_ready()
        work = [threads.submit(process.deliver, event(job("3"), event_id=f"e-{n}")) for n in range(2)]
        until(lambda: marks(tmp_path, "started") == 2)
        times = []
        for path, method in [("/health/readiness", "GET"), ("/health/liveness", "GET"), ("/wake", "POST")] * 20:
            begun = time.monotonic()
            assert process.call(method, path).status in (200, 204)
            times.append(time.monotonic() - begun)
        refused = process.deliver(event(event_id="e-9"))
        assert (refused.status, refused.code, refused.headers["Retry-After"]) == (503, "overloaded", "1")
        assert not any(future.done() for future in work), "the probes were answered beside the work, not after it"
        assert statistics.median(times) < 0.02
        assert [future.result().status for future in work] == [200, 200]


def test_cold_02_a_burst_is_answered_without_a_dropped_connection(tmp_path: Path) -> None:
    """50 at once from zero against one slot: worked on or told to come again, and in the end all done once."""
    with running("slow", tmp_path) as process, ThreadPoolExecutor(50) as threads:

        def persist(number: int) -> set[int]:
            seen: set[int] = set()
            while 200 not in seen:
                seen.add(process.deliver(event(job("0.01"), event_id=f"e-{number}")).status)
                time.sleep(0.05)
            return seen

        statuses = set().union(*threads.map(persist, range(50)))
        assert statuses == {200, 503}
        assert marks(tmp_path, "started") == 50
        assert process.log().count("Booting worker") == 1


def test_sigterm_finishes_what_is_in_hand_and_refuses_the_rest(tmp_path: Path) -> None:
    with running("slow", tmp_path, WAKESWAP_CONCURRENCY="2") as process, ThreadPoolExecutor() as threads:
        process.wait_ready()
        kept_alive = process.connect()
        assert send(kept_alive, event(job("0"), event_id="e-0")).status == 200
        long = threads.submit(process.deliver, event(job("1.5"), event_id="e-1"))
        until(lambda: marks(tmp_path, "started") == 2)
        process.terminate()
        until(lambda: "Handling signal: term" in process.log())
        time.sleep(0.2)
        refused = send(kept_alive, event(job("0"), event_id="e-2"))
        kept_alive.close()
        assert (refused.status, refused.code) == (503, "stopping")
        assert refused.headers["Retry-After"]
        assert long.result().status == 200
        assert process.process.wait(10) == 0
        assert marks(tmp_path, "ended") == 2


def test_a_request_that_comes_after_sigterm_is_served_by_the_next_process(tmp_path: Path) -> None:
    with listening() as listener, ThreadPoolExecutor() as threads:
        first = StageProcess("slow", tmp_path, listener)
        first.wait_ready()
        long = threads.submit(first.deliver, event(job("1"), event_id="e-1"))
        until(lambda: marks(tmp_path, "started") == 1)
        first.terminate()
        until(lambda: "Handling signal: term" in first.log())
        time.sleep(0.2)
        late = threads.submit(first.deliver, event(job("0"), event_id="e-2"))
        assert first.process.wait(10) == 0
        assert long.result().status == 200
        second = StageProcess("slow", tmp_path, listener)
        try:
            assert late.result().status == 200
        finally:
            second.kill()


def test_what_cannot_end_within_the_grace_is_handed_back(tmp_path: Path) -> None:
    settings = {"WAKESWAP_TIMEOUT_SECONDS": "4", "WAKESWAP_LEASE_SECONDS": "3600"}
    with running("slow", tmp_path, **settings) as process, ThreadPoolExecutor() as threads:
        process.wait_ready()
        stuck = threads.submit(process.deliver, event(job("60")))
        until(lambda: marks(tmp_path, "started") == 1)
        process.terminate()
        answer = stuck.result()
        assert (answer.status, answer.code) == (503, "stopping")
        process.process.wait(10)
    with running("slow", tmp_path) as successor:
        assert successor.deliver(event(job("0"))).status == 200, "the lease was released, not left to run out"


def test_ctrl_c_ends_at_once_and_hands_back(tmp_path: Path) -> None:
    with running("slow", tmp_path, WAKESWAP_LEASE_SECONDS="3600") as process, ThreadPoolExecutor() as threads:
        process.wait_ready()
        stuck = threads.submit(process.deliver, event(job("60")))
        until(lambda: marks(tmp_path, "started") == 1)
        begun = time.monotonic()
        process.process.send_signal(2)
        process.process.wait(10)
        assert time.monotonic() - begun < 5
        assert stuck.exception() is not None or stuck.result().status == 503
    with running("slow", tmp_path) as successor:
        assert successor.deliver(event(job("0"))).status == 200


def test_kill_9_leaves_a_lease_that_runs_out(tmp_path: Path) -> None:
    with running("slow", tmp_path, WAKESWAP_LEASE_SECONDS="2") as process, ThreadPoolExecutor() as threads:
        process.wait_ready()
        cut = threads.submit(process.deliver, event(job("60")))
        until(lambda: marks(tmp_path, "started") == 1)
        process.kill()
        assert cut.exception() is not None
    with running("slow", tmp_path, WAKESWAP_LEASE_SECONDS="2") as successor:
        successor.wait_ready()
        answers: list[int] = []
        while not answers or answers[-1] == 409:
            answers.append(successor.deliver(event(job("0"))).status)
            time.sleep(0.1)
        assert answers[0] == 409
        assert answers[-1] == 200
        assert marks(tmp_path, "ended") == 1


def test_whoever_slept_through_its_lease_changes_nothing_when_it_wakes(tmp_path: Path) -> None:
    """A frozen process is taken for dead and its work is done by another; then it goes on where it was."""
    settings = {"WAKESWAP_LEASE_SECONDS": "1"}
    with (
        running("ending", tmp_path, **settings) as frozen,
        running("ending", tmp_path, **settings) as winner,
        ThreadPoolExecutor() as threads,
    ):
        frozen.wait_ready()
        winner.wait_ready()
        late = threads.submit(frozen.deliver, event(job("0.5")))
        until(lambda: marks(tmp_path, "started", stage="ending") == 1)
        os.killpg(frozen.process.pid, signal.SIGSTOP)
        until(lambda: winner.deliver(event(job("0.5"))).status == 200, 10)
        answer, store = winner.deliver(event(job("0.5"))), LocalStore(tmp_path / "objects")
        kept = {key: store.get(key)[0] for key in ends(store)}
        os.killpg(frozen.process.pid, signal.SIGCONT)
        assert late.result(20).body == answer.body
        assert {key: store.get(key)[0] for key in ends(store)} == kept
        assert json.loads(kept[keys.job("demo", JOB, "outcome.json")])["data"] == json.loads(answer.body)


def ends(store: LocalStore) -> list[str]:
    """Everything that is kept about a job's end and about who did what."""
    return [info.key for info in store.list(keys.job("demo", JOB)).objects if info.key.endswith(".json")]


def test_ce_09_an_impatient_sender_starts_nothing_twice(tmp_path: Path) -> None:
    """The work is longer than the sender waits and longer than a lease; each repeat gets a clear answer."""
    with running("slow", tmp_path, WAKESWAP_CONCURRENCY="2", WAKESWAP_LEASE_SECONDS="1") as process:
        process.wait_ready()
        for _ in range(2):
            try:
                repeat = process.deliver(event(job("5")), timeout=1.5)
            except TimeoutError:
                continue
            assert (repeat.status, repeat.code) == (409, "in_progress")
        until(lambda: process.deliver(event(job("5"))).status == 200, 20)
        final = [process.deliver(event(job("5"))) for _ in range(2)]
        assert final[0].body == final[1].body
        assert final[0].headers["ce-id"] == final[1].headers["ce-id"]
        assert marks(tmp_path, "started") == 1


def test_a_stage_that_cannot_start_says_so_and_ends(tmp_path: Path) -> None:
    with running("broken", tmp_path) as process:
        until(lambda: process.readiness().code == "model_not_found", 20)
        answer = process.deliver(event())
        assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "model_not_found", "10")
        assert process.process.wait(10) == 3
        assert "No place has the model." in process.log()


def test_a_stage_that_is_no_stage_ends_at_once(tmp_path: Path) -> None:
    with running("untyped", tmp_path) as process:
        assert process.process.wait(20) == 3


def test_many_events_at_once_are_each_done_once(tmp_path: Path) -> None:
    """Every event delivered three times, shuffled among four senders: one execution and one reply each."""
    with running("slow", tmp_path, WAKESWAP_CONCURRENCY="4") as process, ThreadPoolExecutor(4) as threads:
        process.wait_ready()
        replies: dict[int, set[bytes]] = {}
        guard = threading.Lock()

        def deliver(number: int) -> None:
            answer = process.deliver(event(job("0.02"), event_id=f"e-{number}"))
            while answer.status in (409, 503):
                time.sleep(0.05)
                answer = process.deliver(event(job("0.02"), event_id=f"e-{number}"))
            with guard:
                replies.setdefault(number, set()).add(answer.headers["ce-time"].encode() + answer.body)

        list(threads.map(deliver, [n * 7 % 20 for n in range(60)]))
        assert {len(bodies) for bodies in replies.values()} == {1}
        assert marks(tmp_path, "started") == len(replies) == 20

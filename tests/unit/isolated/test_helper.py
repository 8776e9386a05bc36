"""The helper process with real signals: whatever a decoder does, one refusal comes out and nothing is left behind."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from shared.errors import JsonValue, TransientError, WakeswapError
from shared.imaging.probe import Limits
from shared.isolated.helper import Helper
from shared.rejections import MediaCorruptError, MediaTruncatedError

ROOT = Path(__file__).parents[3]
TASKS = "tests.unit.isolated.hostile"
linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc and its limits")
pytestmark = linux


@pytest.fixture
def helper() -> Iterator[Helper]:
    made = Helper("pixels", TASKS)
    yield made
    made.close()


def ask(helper: Helper, act: str) -> dict[str, JsonValue]:
    found, planes = helper.ask(act.encode(), Limits())
    planes.close()
    return dict(found)


def process_of(helper: Helper) -> psutil.Process:
    wait_for(lambda: helper._process is not None)
    assert helper._process is not None
    return psutil.Process(helper._process.pid)


def wait_for(happened: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("act", "reason"),
    [("segv", "crash"), ("abort", "crash"), ("memory", "memory"), ("spin", "time"), ("hang", "time")],
)
def test_a_decoder_that_breaks_is_the_pictures_fault(helper: Helper, act: str, reason: str) -> None:
    with pytest.raises(MediaCorruptError) as caught:
        ask(helper, act)
    assert (caught.value.status, caught.value.code, caught.value.context) == (422, "media_corrupt", {"reason": reason})
    before = process_of(helper).pid
    assert ask(helper, "fine")["did"] == "fine"
    assert process_of(helper).pid == before, "the helper itself never noticed"


def test_it_writes_no_more_than_its_planes_and_opens_nothing(helper: Helper) -> None:
    assert ask(helper, "write 10000") == {"errno": 0}
    assert ask(helper, "write 10001") == {"errno": errno.EFBIG}
    assert ask(helper, "open") == {"errno": errno.EMFILE}


def test_no_environment_goes_along(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKESWAP_API_KEYS", "demo=0123456789abcdef")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    seen = ask(helper, "environment")["environment"]
    assert isinstance(seen, dict)
    assert set(seen) <= {"LC_ALL", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX", "LD_LIBRARY_PATH", "LC_CTYPE"}
    assert "secret" not in Path(f"/proc/{process_of(helper).pid}/environ").read_text()


def test_a_bug_is_not_called_the_pictures(helper: Helper) -> None:
    with pytest.raises(WakeswapError) as caught:
        ask(helper, "bug")
    assert (type(caught.value), caught.value.status) == (WakeswapError, 500)


def test_the_machine_that_kills_it_is_not_the_picture(helper: Helper) -> None:
    with pytest.raises(TransientError):
        ask(helper, "kill 9")
    assert ask(helper, "fine")["did"] == "fine"


@pytest.mark.parametrize("number", [9, 11])
def test_a_helper_that_ends_meanwhile_is_replaced_twice_at_most(helper: Helper, number: int) -> None:
    ask(helper, "fine")
    before = process_of(helper)
    before.send_signal(number)
    wait_for(lambda: not before.is_running() or before.status() == psutil.STATUS_ZOMBIE)
    assert ask(helper, "fine")["did"] == "fine"
    assert not before.is_running(), "its end was taken note of: no zombie"
    with pytest.raises(TransientError):
        ask(helper, f"helper {number}")


def test_no_fork_outlives_its_helper(helper: Helper) -> None:
    ask(helper, "fine")
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, helper, "sleep 100")
        first = process_of(helper)
        wait_for(lambda: bool(first.children()))
        (fork,) = first.children()
        first.kill()
        wait_for(lambda: not fork.is_running() or fork.status() == psutil.STATUS_ZOMBIE)
        wait_for(lambda: process_of(helper) != first and bool(process_of(helper).children()))
        process_of(helper).children()[0].kill()
        with pytest.raises(TransientError):
            asking.result(60)


@pytest.mark.parametrize("generations", [1, 3])
def test_what_a_decoder_starts_ends_with_it(helper: Helper, generations: int) -> None:
    """It would hold the answer's pipe open, and use the machine for as long as it likes."""
    ask(helper, "fine")
    begun = time.monotonic()
    left = ask(helper, f"leave {generations}")["left"]
    assert time.monotonic() - begun < 15, "nobody waited for it"
    assert isinstance(left, int)
    wait_for(lambda: not psutil.pid_exists(left))
    assert process_of(helper).children(recursive=True) == []
    assert ask(helper, "fine")["did"] == "fine"


@pytest.mark.parametrize("number", [1, 2, 15])
def test_signals_for_the_whole_group_are_the_stages_business(helper: Helper, number: int) -> None:
    ask(helper, "fine")
    process_of(helper).send_signal(number)
    before = process_of(helper).pid
    assert ask(helper, "fine")["did"] == "fine"
    assert process_of(helper).pid == before
    assert os.getpgid(before) != os.getpgid(0)


LIES = ["[]", '"x"', '{"size": [1e9, 2]}', '{"error": "nonsense"}', '{"error": "media_truncated", "context": 3}', "{}"]


@pytest.mark.parametrize("lie", LIES)
def test_what_is_no_answer_is_damage(helper: Helper, lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from shared.isolated import decode, headers
    from tests.unit.imaging.test_fuzz import SAMPLES

    class Lying(Helper):
        def ask(self, data, limits):  # type: ignore[no-untyped-def]
            return super().ask(f"lie {lie}".encode(), limits)

    liar = Lying("pixels", TASKS)
    monkeypatch.setattr(decode, "_helper", liar)
    monkeypatch.setattr(headers, "_helper", liar)
    try:
        for read in (decode.decode, headers.probe):
            with pytest.raises((MediaCorruptError, MediaTruncatedError)):
                read(SAMPLES["heic"], Limits())
    finally:
        liar.close()


def test_an_answer_without_end_is_not_read(helper: Helper) -> None:
    with pytest.raises(WakeswapError):
        ask(helper, "flood")
    assert ask(helper, "fine")["did"] == "fine"


def test_several_threads_ask_at_once(helper: Helper) -> None:
    acts = ["fine", "segv", "sleep 0.1", "abort"] * 10

    def outcome(act: str) -> str:
        try:
            return str(ask(helper, act)["did"])
        except MediaCorruptError:
            return "refused"

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(outcome, acts))
    assert outcomes == ["fine", "refused", "sleep", "refused"] * 10


def test_nothing_is_left_behind(helper: Helper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ask(helper, "fine")
    process = process_of(helper)

    def state() -> tuple[int, int, int]:
        return len(os.listdir("/proc/self/fd")), process.num_fds(), len(process.children())

    before = state()
    for act in ("fine", "segv", "memory", "hang", "bug") * 4:
        try:
            ask(helper, act)
        except WakeswapError:
            assert list(tmp_path.iterdir()) == []
    wait_for(lambda: state() == before)
    helper.close()
    assert not process.is_running()


PARENT = f"""
import sys, threading
from shared.imaging.probe import Limits
from shared.isolated.helper import Helper
helper = Helper("pixels", {TASKS!r})
helper.ask(b"fine", Limits())
print(helper._process.pid, flush=True)
threading.Thread(target=helper.ask, args=(b"sleep 100", Limits()), daemon=True).start()
sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_it_ends_with_its_parent_however_that_ends(killed: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        process = psutil.Process(int(parent.stdout.readline()))
        wait_for(lambda: bool(process.children()))
        (fork,) = process.children()
        if killed:
            parent.kill()
        else:
            parent.stdin.close()
    wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    wait_for(lambda: not fork.is_running() or fork.status() == psutil.STATUS_ZOMBIE)


def test_threads_of_the_parent_do_no_harm(helper: Helper) -> None:
    """It is spawned, not forked: a lock that another thread holds at that moment stays where it is."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            json.dumps(list(range(1000)))

    threads = [threading.Thread(target=busy) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3):
            assert ask(helper, "fine")["did"] == "fine"
            helper.close()
    finally:
        stop.set()
        for thread in threads:
            thread.join()

"""The whole platform as a process of its own: events wake functions, signals end it cleanly, kill -9 loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import psutil
import pytest
import yaml

from infra.local.client import Client
from infra.local.logkeeper import LogKeeper
from infra.local.platform import keep_running
from infra.local.serving.ledger import TOKEN_VARIABLE
from infra.local.state import Facts, StateDir

pytestmark = pytest.mark.slow

MANIFESTS = Path(__file__).parent / "manifests" / "all.yaml"
COMMAND = [sys.executable, "-m", "infra.local"]


class PlatformProcess:
    """`up` on one state folder, through as many lives as a test gives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "state"
        self.manifests = MANIFESTS
        self.state = StateDir(self.folder)
        self.process: subprocess.Popen[str] | None = None

    def arguments(self, command: str, *more: str) -> list[str]:
        common = ["--overlay", str(self.manifests), "--state", str(self.folder), "--idle", "0.5"]
        return [*COMMAND, command, *common, *more]

    def start(self, *more: str) -> None:
        log = (self.folder.parent / "up.log").open("a")
        with log:
            self.process = subprocess.Popen(self.arguments("up", *more), stdout=log, stderr=log, text=True)
        deadline = time.monotonic() + 20
        while self.state.running() is None:
            assert self.process.poll() is None, (self.folder.parent / "up.log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(30)

    def call(self, command: str, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.arguments(command, *more),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def drop(self, name: str) -> None:
        folder = self.folder / "objects" / "in"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("picture")

    def functions(self) -> list[psutil.Process]:
        """Living processes of our pods."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("EVENTS") == f"{self.folder}/events.jsonl":
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def keys(self) -> list[str]:
        """Keys of the uploads that the function was told of, in order."""
        path = self.folder / "events.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [json.loads(event["data"])["Records"][0]["s3"]["object"]["key"] for event in events]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[PlatformProcess]:
    one = PlatformProcess(tmp_path)
    yield one
    if one.process is not None and one.process.poll() is None:
        one.end(signal.SIGTERM)
    for process in one.functions():
        process.kill()


def wait_for(condition: object, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_an_upload_wakes_a_function_and_everything_sleeps_again(platform: PlatformProcess) -> None:
    platform.start()
    platform.drop("a b.jpg")
    wait_for(lambda: platform.keys() == ["in/a+b.jpg"])
    wait_for(lambda: not platform.functions())
    shown = platform.call("status")
    assert shown.returncode == 0
    rows = {line.split()[0]: line for line in shown.stdout.splitlines() if line.strip()}
    assert "asleep" in rows["tiny"]
    assert "idle" in rows["tiny"]
    assert "never" in rows["idle-one"]
    assert "test/tiny" in rows
    events = platform.call("events").stdout
    assert "dev.knative.connector.event.aws-sqs" in events
    assert "204" in events
    time.sleep(1)
    assert platform.keys() == ["in/a+b.jpg"]


def test_sigterm_ends_everything_with_zero(platform: PlatformProcess) -> None:
    platform.start()
    platform.drop("1.jpg")
    wait_for(platform.functions)
    assert platform.end(signal.SIGTERM) == 0
    assert platform.functions() == []
    assert platform.state.running() is None
    assert list((platform.folder / "pods").iterdir()) == []
    output = platform.folder.parent.joinpath("up.log").read_text()
    assert "Traceback" not in output


def test_a_request_in_hand_is_finished_before_the_end(platform: PlatformProcess) -> None:
    platform.start()
    facts = platform.state.running()
    assert facts is not None

    async def story() -> int:
        async with aiohttp.ClientSession() as client:
            working = asyncio.ensure_future(client.get(f"{facts.services['tiny']}/sleep?1.5"))
            while not platform.functions():
                await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            assert platform.process is not None
            platform.process.send_signal(signal.SIGTERM)
            async with await working as answer:
                return answer.status

    assert asyncio.run(story()) == 200
    assert platform.process is not None
    assert platform.process.wait(20) == 0


def test_kill_9_then_a_restart_ends_exactly_the_orphans_and_goes_on(platform: PlatformProcess) -> None:
    stranger = subprocess.Popen(["sleep", "60"], env={**os.environ, TOKEN_VARIABLE: "tiny-of-somebody-else"})
    try:
        platform.start("--idle", "60")
        secret = json.loads((platform.folder / "generated" / "secret-tiny.json").read_text())
        platform.drop("1.jpg")
        wait_for(lambda: len(platform.keys()) == 1)
        orphans = platform.functions()
        assert len(orphans) >= 2
        platform.end(signal.SIGKILL)
        assert all(process.is_running() for process in orphans)
        platform.drop("2.jpg")
        platform.start()
        assert not any(process.is_running() for process in orphans)
        assert stranger.poll() is None
        wait_for(lambda: len(platform.keys()) == 2)
        assert platform.keys() == ["in/1.jpg", "in/2.jpg"]
        assert json.loads((platform.folder / "generated" / "secret-tiny.json").read_text()) == secret
    finally:
        stranger.kill()
        stranger.wait()


def test_a_second_platform_on_the_same_state_is_refused(platform: PlatformProcess) -> None:
    platform.start()
    second = platform.call("up")
    assert second.returncode == 1
    assert "another platform is running" in second.stderr
    assert platform.state.running() is not None


def test_the_pages_need_the_token_and_a_replay_of_nothing_says_so(platform: PlatformProcess) -> None:
    platform.start()
    facts = platform.state.running()
    assert facts is not None

    async def story() -> None:
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{facts.platform}/status") as answer:
                assert answer.status == 401
            async with client.post(f"{facts.platform}/replay?id=x") as answer:
                assert answer.status == 401
            status = await Client(facts, client).status()
            assert {name: one["state"] for name, one in status["services"].items()} == {
                "tiny": "asleep",
                "idle-one": "asleep",
            }
            async with client.get(f"{facts.services['tiny']}/env?K_SINK") as answer:
                assert await answer.text() == f"{facts.platform}/test/default"
            async with client.get(f"{facts.services['tiny']}/env?GREETING") as answer:
                assert await answer.text() == "hello"

    asyncio.run(story())
    gone = platform.call("replay", "no-such-event")
    assert (gone.returncode, gone.stdout) == (1, "no dead letter has this id\n")


def test_without_a_platform_the_command_line_says_so(platform: PlatformProcess) -> None:
    shown = platform.call("status")
    assert shown.returncode == 1
    assert "no platform is running" in shown.stderr


def test_ports_and_variables_from_the_command_line(platform: PlatformProcess) -> None:
    platform.start("--set", "GREETING=good day", "--port", "tiny=0")
    facts = platform.state.running()
    assert facts is not None
    busy = facts.services["idle-one"].rpartition(":")[2]

    async def story() -> None:
        async with aiohttp.ClientSession() as client, client.get(f"{facts.services['tiny']}/env?GREETING") as answer:
            assert await answer.text() == "good day"

    asyncio.run(story())
    other = PlatformProcess(platform.folder.parent / "other")
    refused = other.call("up", "--port", f"tiny={busy}")
    assert refused.returncode == 1
    assert f"Service tiny cannot listen on 127.0.0.1:{busy}" in refused.stderr
    assert "--port tiny=0 takes a free port" in refused.stderr
    assert "is reserved" in other.call("up", "--set", "PORT=1").stderr


def test_a_closed_terminal_ends_everything(platform: PlatformProcess) -> None:
    """SIGHUP, and every later word to the terminal an error."""
    ours, theirs = pty.openpty()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
    platform.process = subprocess.Popen(
        platform.arguments("up", "--idle", "60"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        text=True,
    )
    signal.signal(signal.SIGHUP, before)
    os.close(theirs)
    wait_for(platform.state.running)
    platform.drop("1.jpg")
    wait_for(platform.keys)
    os.close(ours)
    assert platform.end(signal.SIGHUP) == 0
    assert platform.functions() == []
    assert platform.state.running() is None


def test_under_nohup_the_platform_outlives_its_terminal(platform: PlatformProcess) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        platform.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert platform.process is not None
    platform.process.send_signal(signal.SIGHUP)
    platform.drop("1.jpg")
    wait_for(platform.keys)
    assert platform.end(signal.SIGTERM) == 0


def test_an_impatient_person_does_not_disturb_the_end(platform: PlatformProcess) -> None:
    platform.start("--idle", "60")
    platform.drop("1.jpg")
    wait_for(platform.keys)
    assert platform.process is not None
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        platform.process.send_signal(number)
        time.sleep(0.05)
    assert platform.process.wait(30) == 0
    assert platform.functions() == []


def test_what_pods_of_a_killed_platform_left_on_disk_is_removed(platform: PlatformProcess) -> None:
    platform.start()
    platform.end(signal.SIGKILL)
    left = platform.folder / "volumes" / "tiny-0123" / "secrets"
    left.mkdir(parents=True)
    (left / "KEY").write_text("secret")
    platform.start()
    assert list((platform.folder / "volumes").iterdir()) == []


def publish(facts: Facts, event_id: str, event_type: str) -> None:
    head = {"ce-specversion": "1.0", "ce-id": event_id, "ce-source": "/s", "ce-type": event_type, "ce-subject": "[/]"}
    request = urllib.request.Request(f"{facts.platform}/test/default", b"", head)
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 202


def test_no_event_is_given_up_because_it_stood_in_a_queue(platform: PlatformProcess, tmp_path: Path) -> None:
    """One pod, one event at a time, and the last of those on their way waits longer than a request may."""
    documents = list(yaml.safe_load_all(MANIFESTS.read_text()))
    for document in documents:
        if document["kind"] == "Trigger":
            document["spec"] |= {"delivery": {"retry": 0}}
            document["spec"]["subscriber"]["uri"] = "/nap?0.5"
        if document["kind"] == "Service" and document["metadata"]["name"] == "tiny":
            template = document["spec"]["template"]
            template["metadata"] = {"annotations": {"autoscaling.knative.dev/max-scale": "1"}}
            template["spec"] |= {"containerConcurrency": 1, "timeoutSeconds": 2}
    platform.manifests = tmp_path / "manifests.yaml"
    platform.manifests.write_text(yaml.safe_dump_all(documents))
    platform.start("--idle", "5")
    facts = platform.state.running()
    assert facts is not None
    for number in range(14):
        publish(facts, str(number), "test.slow")

    async def states() -> Counter[tuple[str, int, int]]:
        async with aiohttp.ClientSession() as http:
            client = Client(facts, http)
            await client.wait_asleep()
            return Counter((event["state"], event["code"], event["failures"]) for event in await client.events())

    assert asyncio.run(states()) == {("done", 204, 0): 14}


def test_events_are_shown_as_they_are_whatever_they_hold(platform: PlatformProcess) -> None:
    platform.start()
    facts = platform.state.running()
    assert facts is not None
    publish(facts, "[/red]", "[bold]x")
    shown = platform.call("events")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "[/red]" in shown.stdout
    assert "[bold]x" in shown.stdout


def test_a_log_is_cut_while_its_function_writes_it(platform: PlatformProcess) -> None:
    logs = platform.folder / "logs"
    logs.mkdir(parents=True)
    path = logs / "chatty.log"
    with path.open("ab", buffering=0) as writer:
        keeper = LogKeeper(logs, limit=1000)
        writer.write(b"a" * 1000)
        keeper.look()
        assert path.stat().st_size == 1000
        writer.write(b"b")
        keeper.look()
        writer.write(b"c")
    assert path.read_bytes() == b"c"
    assert (logs / "chatty.log.1").read_bytes() == b"a" * 1000 + b"b"


def test_work_that_breaks_off_is_told_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    lives: list[int] = []

    async def work() -> None:
        lives.append(len(lives))
        if len(lives) < 3:
            raise RuntimeError("broken")

    asyncio.run(keep_running(work, "the work", pause=0.01))
    assert lives == [0, 1, 2]
    assert [record.message for record in caplog.records] == ["the work broke off, starting it again"] * 2

"""The state folder: one platform at a time, secrets kept, and exactly our own orphans ended."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from infra.local.serving.ledger import TOKEN_VARIABLE, Ledger, PodRecord, find_processes
from infra.local.state import Facts, StateDir, StateError

SLEEPER = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]


def test_one_platform_at_a_time(tmp_path: Path) -> None:
    first, second = StateDir(tmp_path / "state"), StateDir(tmp_path / "state")
    first.acquire()
    with pytest.raises(StateError, match="another platform is running"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()


def test_the_announcement_is_private_and_dies_with_its_process(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    assert state.running() is None
    facts = Facts("http://127.0.0.1:1", "token", {"a": "url"}, {}, {"s": {"K": "v"}})
    state.announce(facts)
    assert state.running() == facts
    assert (tmp_path / "platform.json").stat().st_mode & 0o777 == 0o600
    state.announce(replace(facts, create_time=1.0))
    assert state.running() is None
    state.announce(replace(facts, pid=2**22 + 1))
    assert state.running() is None
    (tmp_path / "platform.json").write_text("{")
    assert state.running() is None


def test_secrets_are_made_once_and_kept_private(tmp_path: Path) -> None:
    templates = {"KEY": "demo={random},two={random}", "STORE": "file:{state}/objects"}
    made = StateDir(tmp_path).generated("secret-x", templates)
    first, second = re.fullmatch(r"demo=([0-9a-f]{64}),two=([0-9a-f]{64})", made["KEY"]).groups()  # type: ignore[union-attr]
    assert first != second
    assert made["STORE"] == f"file:{tmp_path}/objects"
    assert StateDir(tmp_path).generated("secret-x", templates) == made
    assert (tmp_path / "generated" / "secret-x.json").stat().st_mode & 0o777 == 0o600
    changed = StateDir(tmp_path).generated("secret-x", {**templates, "KEY": "other={random}"})
    assert changed["KEY"].startswith("other=")
    for damage in ("", "[1]", '{"KEY": 5}', '{"KEY": {}}'):
        (tmp_path / "generated" / "secret-x.json").write_text(damage)
        with pytest.raises(StateError, match=r"secret-x\.json is damaged: remove it"):
            StateDir(tmp_path).generated("secret-x", templates)


def sleeper(token: str = "") -> subprocess.Popen[bytes]:
    environment = {**os.environ, TOKEN_VARIABLE: token} if token else dict(os.environ)
    process = subprocess.Popen(SLEEPER, env=environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def opened(ledger: Ledger) -> PodRecord:
    record = ledger.name("tiny")
    ledger.open(record)
    return record


def test_orphans_are_ended_by_token_or_by_number_and_birth_and_nobody_else(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    record = opened(ledger)
    ours, numbered, reused, strange = sleeper(record.token), sleeper(), sleeper(), sleeper("tiny-another")
    ledger.add(record, numbered.pid)
    ledger._write(PodRecord("old", ((reused.pid, 1.0),)))
    try:
        assert ledger.reap(grace=5) == 2
        assert ours.poll() is not None
        assert numbered.poll() is not None
        assert reused.poll() is None
        assert strange.poll() is None
        assert list(tmp_path.iterdir()) == []
        assert ledger.reap(grace=5) == 0
    finally:
        for process in (ours, numbered, reused, strange):
            process.kill()
            process.wait()


def test_closed_records_are_forgotten(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    record = ledger.add(opened(ledger), os.getpid())
    assert [process.pid for process in find_processes([record])] == [os.getpid()]
    ledger.close(record)
    assert ledger.reap(grace=1) == 0


def test_a_process_that_is_gone_needs_no_record(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    record = opened(ledger)
    process = sleeper(record.token)
    process.kill()
    process.wait()
    assert not psutil.pid_exists(process.pid)
    assert ledger.add(record, process.pid) == record


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"processes": 5}'])
def test_a_record_that_a_power_cut_damaged_still_names_its_orphans(tmp_path: Path, damage: str) -> None:
    ledger = Ledger(tmp_path)
    record = opened(ledger)
    (tmp_path / f"{record.token}.json").write_text(damage)
    (tmp_path / "half.tmp").write_text("{")
    ours = sleeper(record.token)
    try:
        assert ledger.reap(grace=5) == 1
        assert list(tmp_path.iterdir()) == []
    finally:
        ours.kill()
        ours.wait()

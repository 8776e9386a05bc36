"""A job's whole life under the local platform: on record at every station, deleted when it is due, and provably so."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.local.machine import ROOT, Machine, Receiver
from tests.local.test_pipeline import FACE, drop, machine, post, receiver

__all__ = ["machine", "receiver"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def call(one: Machine, *arguments: str, expected: int = 0, secrets: dict[str, Any] | None = None) -> str:
    """An operator's command; what it printed. `secrets`: of a platform that is down now."""
    generated = secrets or one.facts()["generated"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WAKESWAP_")}
    environ |= {"WAKESWAP_STORE_URL": f"file:{one.objects}", **generated["wakeswap-audit"]}
    environ |= {"WAKESWAP_TENANTS": '{"demo": {"policy": {"keep_inputs_hours": 1, "keep_results_hours": 2}}}'}
    environ |= generated["wakeswap-events"]
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, check=False, capture_output=True, text=True)
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout


def audit(one: Machine, job: str = "") -> list[dict[str, Any]]:
    shown = call(one, "infra.audit", "show", "--tenant", "demo", "--job", job, "--format", "json")
    return [json.loads(line) for line in shown.splitlines()]


def age(one: Machine, hours: float) -> None:
    for path in one.objects.rglob("*"):
        if path.is_file() and ".store" not in path.parts:
            when = path.stat().st_mtime - hours * 3600
            os.utime(path, (when, when))


def test_from_the_request_to_the_proof(machine: Callable[..., Machine], receiver: Receiver) -> None:
    one = machine(tenants=receiver.tenants())
    one.up()
    status, job = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg")
    assert status == 200
    drop(one, 1)
    one.until(lambda: len(one.outcomes()) == 2, 120)
    one.until(lambda: len(receiver.told) == 2, 60)
    one.until(lambda: Counter(line["what"] for line in audit(one))["webhook"] == 2, 60)
    lines = audit(one, job["id"])
    assert Counter((line["what"], line["decision"], line["by"]) for line in lines) == {
        ("job", "accepted", "env:demo"): 1,
        ("moderation", "pass", "stage:moderate"): 2,
        ("moderation", "pass", "stage:publish"): 1,
        ("result", "published", "stage:publish"): 1,
        ("webhook", "delivered", "stage:notify"): 1,
    }
    source = FACE / "one_face.jpg"
    (accepted,) = [line for line in lines if line["decision"] == "accepted"]
    assert call(one, "infra.audit", "mark", str(source)).strip() in accepted["facts"]["pictures"]["source"]
    assert hashlib.sha256(source.read_bytes()).hexdigest() not in str(lines)
    assert {line["by"] for line in audit(one) if line["decision"] == "accepted"} == {"env:demo", "door:upload"}
    files = list((one.objects / "system/audit").rglob("*.jsonl"))
    assert len(files) == 8, "one object an event: accepted, moderated, published, delivered; twice"

    one.until(one.asleep, 60)
    ask = partial(call, one, secrets=one.facts()["generated"])
    one.down()  # it would take the aged uploads for new ones
    ask("infra.retention", "prove", job["id"], "--tenant", "demo", expected=1)
    age(one, 3)
    assert "demo\tresult\t2\t" in ask("infra.retention", "run", "--dry-run")
    jobs = list(one.outcomes())
    ask("infra.retention", "run")
    assert not list((one.objects / "tenants/demo/jobs").rglob("*"))
    assert not [path for path in one.inbox.rglob("*") if path.is_file() and not path.name.endswith(".job.json")]
    for name in jobs:
        assert "Nothing is left" in ask("infra.retention", "prove", name, "--tenant", "demo")


def test_nothing_of_the_jobs_lies_in_the_temporary_folder(
    machine: Callable[..., Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    one = machine()
    one.up()
    assert post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg")[0] == 200
    one.until(one.asleep, 60)
    left = [path for path in scratch.rglob("*") if path.is_file()]
    assert not left

"""The command line, as an operator and as a CronJob calls it."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.retention.cli import main
from shared.audit.trail import Trail
from shared.storage import keys
from tests.signing import EVENT_KEYS
from tests.unit.retention.world import AUDIT_KEY, World

JOB = "job-of-http-1"


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """The command makes the process's logs its own."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logging.raiseExceptions, sys.excepthook, threading.excepthook)
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level, logging.raiseExceptions, sys.excepthook, threading.excepthook = before


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def call(world: World, *arguments: str, **environ: str) -> int:
    own = {
        "WAKESWAP_STORE_URL": f"file:{world.root}",
        "WAKESWAP_TENANTS": '{"demo": {"policy": {"keep_inputs_hours": 1, "keep_results_hours": 2}}}',
        "WAKESWAP_AUDIT_KEY": AUDIT_KEY,
        "WAKESWAP_EVENT_KEYS": EVENT_KEYS,
    }
    return main(arguments, {**own, **environ})


def test_a_deletion_cut_short_after_the_last_object_of_a_tenant_is_finished(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the tenant that is left in the store is the plan, and nothing is on record yet."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    world.job(JOB, 40, ended=30)
    with monkeypatch.context() as patch:
        patch.setattr(Trail, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            call(world, "run")
    assert not world.names("tenants/")
    assert world.names("system/retention/")
    assert call(world, "run") == 0
    assert not world.names("system/retention/")
    assert {line["code"] for line in world.lines() if line["what"] == "retention"} == {"inputs", "result", "records"}


def test_run_and_prove(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.job(JOB, 40, ended=1.5)
    assert call(world, "run", "--dry-run") == 0
    assert "demo\tinputs\t3\t" in capsys.readouterr().out
    assert call(world, "run", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["tenants"][0]["deleted"]["inputs"]["objects"] == 3
    assert call(world, "prove", JOB, "--tenant", "demo") == 1
    assert f"left\tresult\t{keys.result('demo', JOB + '.jpg')}" in capsys.readouterr().out
    world.date(keys.job("demo", JOB, "outcome.json"), 3)
    assert call(world, "run", "--tenant", "demo") == 0
    capsys.readouterr()
    assert call(world, "prove", JOB, "--tenant", "demo", "--format", "json") == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (facts["nothing_left"], facts["proven"], facts["left"]) == (True, True, [])
    assert {entry["code"] for entry in facts["audit"]} == {"inputs", "result", "records"}


@pytest.mark.parametrize("job", ["job-of-nobody", "x", "../../secret"])
def test_nothing_is_proven_of_a_job_that_never_was(world: World, job: str) -> None:
    assert call(world, "prove", job, "--tenant", "demo") == 1


def test_a_tenant_that_is_not_known_keeps_what_it_has(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """A run with other settings than the stages must not delete by the defaults."""
    world.job(JOB, 9000, ended=8000)
    before = world.names()
    assert call(world, "run", WAKESWAP_TENANTS="{}") == 1
    assert world.names() == before
    assert "demo\twaits\t-\tleft as it is" in capsys.readouterr().out


def test_jobs_that_nothing_moves_wait_for_a_run_with_a_broker(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    job = world.job("job-stuck-1", 400)
    assert call(world, "run") == 1
    assert "K_SINK" in capsys.readouterr().out
    assert keys.job("demo", job, "outcome.json") not in world.names()


def test_records_of_deliveries_and_dead_letters_go_by_age(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.job(JOB, 4, ended=0.5)
    old = [world.put(keys.system(name, "x.json"), b"{}", age=337) for name in ("work", "batch", "dead-letter")]
    world.put(keys.system("review", "demo.job-gone-1.0123.json"), b"{}", age=337)
    waits = world.job("job-in-review", 300)
    kept = {
        world.put(keys.system("dead-letter", "y.json"), b"{}", age=300),
        world.put(keys.system("review", f"demo.{waits}.0123.json"), b"{}", age=337),
    }
    assert call(world, "run", "--tenant", "demo") == 0
    assert set(old) <= world.names()
    assert call(world, "run") == 0
    assert "_nobody\tleftovers\t4\t" in capsys.readouterr().out
    assert {key for key in world.names("system/") if not key.startswith(keys.audit())} == kept


def test_a_dead_letter_that_tells_of_the_job_is_something_left(world: World) -> None:
    world.job(JOB, 40, ended=3)
    assert call(world, "run") == 0
    assert call(world, "prove", JOB, "--tenant", "demo") == 0
    letter = json.dumps({"tenantid": "demo", "subject": JOB}).encode()
    world.put(keys.system("dead-letter", "z.json"), letter, age=1)
    world.put(keys.system("dead-letter", "bad.json"), b"{", age=1)
    assert call(world, "prove", JOB, "--tenant", "demo") == 1
    assert call(world, "prove", JOB, "--tenant", "acme") == 1


def test_a_damaged_plan_is_made_anew(world: World) -> None:
    world.job(JOB, 40, ended=3)
    world.put(keys.deletion("demo", f"{JOB}.plan.json"), b'{"ten', age=2)
    assert call(world, "run") == 0
    assert call(world, "prove", JOB, "--tenant", "demo") == 0


def test_wrong_settings(world: World) -> None:
    assert call(world, "run", WAKESWAP_ABANDONED_HOURS="0") == 2

"""Under the local platform: what jobs used is on record once each, and the report is the sum of what was measured."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psutil
import pytest

from shared.usage.pricing import STANDARD
from tests.local.machine import ROOT, Machine
from tests.local.test_enhance import NAME, install, woken
from tests.local.test_pipeline import FACE, IMAGE
from tests.standins import enhancers

PRICE_FILE = STANDARD.read_text().replace('cpu = "0.00004"', 'cpu = "0.3737"').replace('"2026-12"', '"high-1"')
"""Prices at which a picture costs some cents."""
PRICES = tomllib.loads(PRICE_FILE)
BROKEN = "gfpgan_1.3"
"""Another enhancer; its file here does not take its pictures, so that its jobs fail after all retries."""
pytestmark = pytest.mark.slow


def add_broken(lock: Path) -> None:
    (built,) = enhancers.build(lock.parent / "broken", enhancers.FAMILIES["gpen_256"]).values()
    data = built.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    (lock.parent / "bucket/models/sha256" / digest).write_bytes(data)
    with lock.open("a") as file:
        file.write(f'[models."{BROKEN}".model]\nsha256 = "{digest}"\nsize = {len(data)}\n')


@pytest.fixture
def machine(tmp_path: Path, model_files: Callable[[str], object]) -> Iterator[Machine]:
    for name in ("centerface", "face_mesh", "open_nsfw", "pp_ocr_v6_small"):
        model_files(name)
    lock = install(tmp_path / "standin")
    add_broken(lock)
    shutil.copytree(ROOT / ".wakeswap/models", tmp_path / "models", copy_function=os.link)

    (tmp_path / "prices.toml").write_text(PRICE_FILE)

    def change(docs: list[dict[str, Any]]) -> None:
        for doc in docs:
            if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
                doc["data"]["WAKESWAP_PRICES"] = str(tmp_path / "prices.toml")
                doc["data"]["WAKESWAP_MODEL_BUCKET"] = f"file:{lock.parent / 'bucket'}"
                doc["data"]["WAKESWAP_MODEL_LOCK"] = str(lock)
            if doc["kind"] == "Trigger" and doc["metadata"]["name"] == "enhance":
                doc["spec"]["delivery"] |= {"retry": 4, "backoffDelay": "PT0.2S"}

    tenants = {"demo": {"policy": {"max_concurrent": 1000, "jobs_per_minute": 1000}}}
    one = Machine(tmp_path, change, tenants=tenants, models=tmp_path / "models")
    for name in ("one_face.jpg", "same_face_twice.jpg", "three_faces_small_mid_large.jpg", "no_face.png"):
        shutil.copy(FACE / name, one.inbox / name)
    shutil.copy(IMAGE / "truncated_60pct.jpg", one.inbox / "truncated_60pct.jpg")
    yield one
    one.down()


def drop(machine: Machine, name: str, target: str, **options: object) -> None:
    job = {"source": "one_face.jpg", "target": target, "options": options}
    (machine.inbox / f".{name}").write_text(json.dumps(job))
    (machine.inbox / f".{name}").rename(machine.inbox / f"{name}.job.json")


def usages(machine: Machine) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (machine.objects / "tenants/demo/usage").glob("*/*.json")]


def months(machine: Machine) -> list[str]:
    return sorted(path.name for path in (machine.objects / "tenants/demo/usage").iterdir())


def report(machine: Machine, month: str, shape: str) -> str:
    command = [sys.executable, "-m", "infra.usage", "report", "--tenant", "demo", "--month", month, "--format", shape,
               "--store", f"file:{machine.objects}"]  # fmt: skip
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def works(machine: Machine, job: str) -> list[dict[str, Any]]:
    found = (machine.objects / "tenants/demo/jobs" / job).glob("*/work.*.json")
    return [json.loads(path.read_text()) for path in found]


def step(name: str, size: int) -> Fraction:
    steps = PRICES[name]
    return next(Fraction(s["factor"]) for s in steps if "up_to" not in s or size <= int(s["up_to"]))


def named(table: str, name: str) -> Fraction:
    return Fraction(PRICES[table].get(name or "none", PRICES[table]["other"]))


def expected(machine: Machine, job: str, end: dict[str, Any]) -> Fraction:
    """What the job costs, from its own records and the price file: none of the product's code is asked."""
    kind = end["type"].split(".")[3]
    cost = Fraction(0)
    for work in works(machine, job):
        for provider, seconds in work["device"].items():
            cost += Fraction(repr(seconds)) * named("device_seconds", provider)
    if kind == "completed":
        record = json.loads((machine.objects / f"tenants/demo/jobs/{job}/job.json").read_text())
        options, made = record["job"]["options"], end["data"]["resized_from"] or end["data"]
        cost *= step("resolutions", made["width"] * made["height"]) * step("boosts", options["boost"])
        for mode in ("swapper", "enhancer", "upscaler"):
            cost *= named(f"{mode}s", options[mode])
    return half_up(cost * Fraction(PRICES["outcomes"][kind]), 9)


def half_up(value: Fraction, places: int) -> Fraction:
    return Fraction((value * 10**places + Fraction(1, 2)).__floor__(), 10**places)


@pytest.mark.timeout(900)
def test_the_report_of_50_mixed_jobs_is_the_sum_of_what_was_measured(machine: Machine) -> None:
    wanted = {"plain": 18, "better": 12, "refused": 9, "broken": 6, "failing": 5}
    machine.up()
    for number in range(wanted["plain"]):
        large = number % 3 == 0
        drop(machine, f"plain-{number}", "three_faces_small_mid_large.jpg" if large else "same_face_twice.jpg")
    for number in range(wanted["better"]):
        drop(machine, f"better-{number}", "same_face_twice.jpg", enhancer=NAME, format="png")
    for number in range(wanted["refused"]):
        drop(machine, f"refused-{number}", "no_face.png")
    for number in range(wanted["broken"]):
        drop(machine, f"broken-{number}", "truncated_60pct.jpg")
    for number in range(wanted["failing"]):
        drop(machine, f"failing-{number}", "same_face_twice.jpg", enhancer=BROKEN)
    machine.until(lambda: len(machine.outcomes()) == 50 and machine.asleep(), 800)
    ends, found = machine.outcomes(), {usage["job"]: usage for usage in usages(machine)}
    assert Counter(usage["measures"]["outcome"] for usage in found.values()) == {
        "completed": wanted["plain"] + wanted["better"],
        "rejected": wanted["refused"] + wanted["broken"],
        "failed": wanted["failing"],
    }
    costs = {job: expected(machine, job, end) for job, end in ends.items()}
    assert {job: Fraction(usage["bill"]["cost"]) for job, usage in found.items()} == costs
    assert len(set(costs.values())) > 20, "measured, not set"
    assert "enhance" in woken(machine)
    assert {usage["bill"]["prices"] for usage in found.values()} == {"high-1"}
    assert sum(costs.values()) > 1
    total = Fraction(0)
    for month in months(machine):  # two, if the test runs when one ends
        document = json.loads(report(machine, month, "json"))
        rows = list(csv.DictReader(io.StringIO(report(machine, month, "csv"))))
        cost = sum((costs[row["job"]] for row in rows), Fraction(0))
        assert Fraction(document["totals"]["EUR"]) == half_up(cost, 2)
        assert report(machine, month, "table").splitlines()[-1] == f"total  {document['totals']['EUR']} EUR"
        total += cost
    assert total == sum(costs.values())


@pytest.mark.timeout(600)
def test_a_job_killed_in_mid_work_and_retried_is_billed_once(machine: Machine) -> None:
    """Every function is killed with -9 while detect, later swap, holds work; in the end meter itself, in its turn."""
    machine.up()
    held: dict[Path, str] = {}
    dropped = 0
    for stage in ("detect", "swap"):
        while not any(path.parent.name == stage for path in held):
            for _ in range(3):
                drop(machine, f"job-{dropped}", "three_faces_small_mid_large.jpg")
                dropped += 1
            machine.until(lambda stage=stage: bool(unfinished(machine, stage)), 120)  # type: ignore[misc]
            kill_all(machine)
            held |= {path: json.loads(path.read_text())["owner"] for path in unfinished(machine, stage)}
    machine.until(lambda: bool(usages(machine)), 180)
    kill_all(machine)
    machine.until(lambda: len(machine.outcomes()) == dropped and machine.asleep(), 240)
    for path, owner in held.items():
        work = json.loads(path.read_text())
        assert work["owner"] != owner, "another attempt did it"
        assert work["finished"]
    ends, found = machine.outcomes(), usages(machine)
    assert sorted(usage["job"] for usage in found) == sorted(ends)
    assert {usage["measures"]["outcome"] for usage in found} == {"completed"}
    for usage in found:
        stages = [stage["stage"] for stage in usage["stages"]]
        assert sorted(stages) == ["detect", "moderate", "publish", "swap"], "one attempt of each counted"
        assert Fraction(usage["bill"]["cost"]) == expected(machine, usage["job"], ends[usage["job"]])


def unfinished(machine: Machine, stage: str) -> list[Path]:
    """Work records of a stage that holds the work and has not done it."""
    found = (machine.objects / "tenants/demo/jobs").glob(f"*/{stage}/work.*.json")
    return [path for path in found if not json.loads(path.read_bytes())["finished"]]


def kill_all(machine: Machine) -> None:
    for process in machine.processes():
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue

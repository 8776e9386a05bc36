"""A tenant made with the command line while the platform runs: its jobs pass every stage, its limits hold."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.machine import ROOT, Machine
from tests.local.test_pipeline import FACE, post

pytestmark = pytest.mark.slow


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    machine.up()
    yield machine
    machine.down()


def tenants(machine: Machine, *arguments: str) -> str:
    command = [sys.executable, "-m", "infra.tenants", *arguments, "--folder", str(machine.state / "tenants")]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def listed(machine: Machine, key: str) -> int:
    """Status of a listing with this key."""
    url = machine.facts()["services"]["intake"] + "/v1/jobs"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_tenant_comes_is_limited_and_goes_while_everything_runs(machine: Machine) -> None:
    assert listed(machine, machine.key()) == 200, "intake is awake, and its folder empty"
    key = tenants(machine, "create", "acme")
    machine.until(lambda: listed(machine, key) == 200, 60)
    send = {"Authorization": f"Bearer {key}"}
    status, job = post(machine, FACE / "one_face.jpg", FACE / "one_face.jpg", **send)
    assert (status, job["status"]) == (200, "succeeded"), job
    assert (machine.objects / "tenants/acme/results").is_dir()

    path = machine.state / "tenants" / "acme.yaml"
    path.write_text(path.read_text().replace("policy: {}", "policy: {swappers: [other]}"))
    machine.until(lambda: post(machine, FACE / "one_face.jpg", FACE / "one_face.jpg", **send)[0] == 403, 60)
    assert post(machine, FACE / "one_face.jpg", FACE / "one_face.jpg")[0] == 200, "the demo tenant is as it was"

    (kept,) = json.loads(tenants(machine, "key", "list", "acme", "--json"))["keys"]
    assert kept["look_up"] == key[3:11]
    tenants(machine, "key", "revoke", "acme", key[3:11])
    machine.until(lambda: listed(machine, key) == 401, 60)

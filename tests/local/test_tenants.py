"""A tenant made with the command line while the platform runs: its jobs pass every stage, its limits hold."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.local.machine import ROOT, Machine
from tests.local.test_pipeline import FACE, post

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    machine.up()
    yield machine
    machine.down()


def tenants(machine: Machine, *arguments: str) -> str:
    command = [sys.executable, "-m", "infra.tenants", *arguments, "--folder", str(machine.state / "tenants")]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def get(machine: Machine, key: str, path: str = "/v1/jobs") -> tuple[int, Any]:
    """Status and body of what this key gets there."""
    url = machine.facts()["services"]["intake"] + path
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})) as answer:
            return int(answer.status), json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def send(machine: Machine, key: str) -> tuple[int, Any]:
    return post(machine, FACE / "one_face.jpg", FACE / "one_face.jpg", "wait=1", Authorization=f"Bearer {key}")


def test_a_tenant_comes_is_limited_and_goes_while_everything_runs(machine: Machine) -> None:
    assert (machine.state / "tenants").is_dir(), "before any pod has mounted it"
    assert get(machine, machine.key())[0] == 200, "intake is awake, and its folder empty"
    key = tenants(machine, "create", "acme")
    machine.until(lambda: get(machine, key)[0] == 200, 60)
    status, job = send(machine, key)
    assert status in (200, 202), job
    machine.until(lambda: get(machine, key, f"/v1/jobs/{job['id']}")[1]["status"] == "succeeded", 100)
    assert (machine.objects / "tenants/acme/results").is_dir()

    path = machine.state / "tenants" / "acme.yaml"
    path.write_text(path.read_text().replace("policy: {}", "policy: {swappers: [other]}"))
    machine.until(lambda: send(machine, key)[1].get("code") == "not_allowed", 60)
    assert send(machine, machine.key())[0] in (200, 202), "the demo tenant is as it was"

    (kept,) = json.loads(tenants(machine, "key", "list", "acme", "--json"))["keys"]
    assert kept["look_up"] == key[3:11]
    tenants(machine, "key", "revoke", "acme", key[3:11])
    machine.until(lambda: get(machine, key)[0] == 401, 60)

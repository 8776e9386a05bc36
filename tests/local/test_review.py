"""Jobs that wait for a person, under the local platform: approved ones come to their picture, refused ones end once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.local.machine import ROOT, Machine, Receiver
from tests.local.test_pipeline import COMPLETED, FACE, machine, post, receiver

__all__ = ["machine", "receiver"]
pytestmark = pytest.mark.slow
EVERYTHING = {"nsfw_action": "review", "nsfw_threshold": 0.0}


def review(one: Machine, *arguments: str) -> Any:
    """`python -m infra.review ...` as an operator runs it; what it printed, or its exit status."""
    facts = one.facts()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WAKESWAP_")}
    environ |= {
        "WAKESWAP_STORE_URL": f"file:{one.objects}",
        "K_SINK": f"{facts['platform']}/wakeswap/default",
        **facts["generated"]["wakeswap-events"],
    }
    command = [sys.executable, "-m", "infra.review", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, check=False, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.returncode


def shown(one: Machine, job: str) -> Any:
    url = f"{one.facts()['services']['intake']}/v1/jobs/{job}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {one.key()}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def asked(one: Machine) -> str:
    status, body = post(one, FACE / "one_face.jpg", FACE / "same_face_twice.jpg", prefer="wait=0")
    assert (status, body["status"] in ("waiting", "queued", "running", "in_review")) == (202, True)
    one.until(lambda: shown(one, body["id"])["status"] == "in_review", 60)
    return str(body["id"])


@pytest.mark.timeout(300)
def test_a_person_decides_over_the_broker(machine: Callable[..., Machine], receiver: Receiver) -> None:
    tenants = receiver.tenants()
    tenants["demo"]["policy"] = EVERYTHING
    one = machine(tenants=tenants)
    one.up()
    good, bad = asked(one), asked(one)
    assert {row["job"] for row in review(one, "list")} == {good, bad}
    one.until(one.asleep, 60)  # nobody keeps a process awake for a person
    assert one.outcomes() == {}
    assert review(one, "show", good)[0]["decisions"][0]["model"] == "open_nsfw"

    assert review(one, "approve", good, "--by", "ann")[0]["verdict"] == "approved"
    assert review(one, "reject", bad, "--by", "bob", "--note", "no")[0]["by"] == "bob"
    one.until(lambda: set(one.outcomes()) == {good, bad}, 90)
    ends = one.outcomes()
    assert ends[good]["type"] == COMPLETED
    assert ends[bad]["type"] == "dev.wakeswap.moderate.rejected.v1"
    assert review(one, "list") == []
    assert review(one, "approve", bad) == 1
    one.until(lambda: len(receiver.told) == 2, 60)
    assert sorted(message for message, _ in receiver.told) == sorted([f"{good}.completed", f"{bad}.rejected"])

    moderation = shown(one, good)["moderation"]
    assert {(entry["stage"], entry["picture"], entry["action"]) for entry in moderation} == {
        ("moderate", "source", "approved"),
        ("moderate", "target", "approved"),
        ("publish", "finished", "approved"),
    }
    assert {len(entry["model_digest"]) for entry in moderation} == {64}
    one.until(one.asleep, 60)
    history = one.admin("/events?limit=1000")
    assert {entry["state"] for entry in history} == {"done"}

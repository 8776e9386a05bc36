"""Dead letters: kept as they were, and one failure for a job that had not ended."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from functions.dead_letter import main
from shared.errors import JsonValue
from shared.events.event import Event
from shared.events.payloads import Failure
from tests.unit.jobs.world import World

JOB = "0b7f6f5e-1111-4222-8333-444455556666"
PROBLEM = json.dumps({"type": "urn:wakeswap:problem:model_invalid", "status": 503, "code": "model_invalid"})
LETTER = Event(
    "e-1",
    "/wakeswap/moderate",
    "dev.wakeswap.moderate.completed.v1",
    subject=JOB,
    time="2026-01-02T03:04:05Z",
    datacontenttype="application/json",
    extensions={
        "tenantid": "demo",
        "knativeerrordest": "http://detect.wakeswap.svc.cluster.local",
        "knativeerrorcode": "503",
        "knativeerrordata": PROBLEM,
    },
    data={"job": JOB},
)


def failures(world: World, event: Event) -> list[Failure]:
    return [entry.payload for entry in main.handle(event, world) if isinstance(entry.payload, Failure)]


def test_failure_carries_the_brokers_reason(world: World) -> None:
    (failure,) = failures(world, LETTER)
    assert (failure.job, failure.stage, failure.code, failure.dead_letter) == (JOB, "detect", "model_invalid", "e-1")


def test_same_letter_has_the_same_cause(world: World) -> None:
    (first,), (second,) = list(main.handle(LETTER, world)), list(main.handle(LETTER, world))
    assert (first.cause, first.tenant) == (second.cause, second.tenant) == (LETTER.digest, "demo")


@pytest.mark.parametrize(
    ("dest", "code", "data", "stage", "reason"),
    [
        ("http://dead-letter.ns.svc.cluster.local/", "500", "", "dead_letter", "http_500"),
        ("http://127.0.0.1:4711/", "-1", "<html>", "", "undeliverable"),
        ("http://fused.ns.svc.cluster.local/swap", "500", "", "swap", "http_500"),
        ("", "", "", "", "undeliverable"),
        ("not an address", "422", '{"code": "Bad Code"}', "", "http_422"),
        ("http://swap/", "503", base64.b64encode(PROBLEM.encode()).decode(), "swap", "model_invalid"),
        ("http://swap/", "503", PROBLEM[:-2], "swap", "http_503"),
    ],
)
def test_reasons(world: World, dest: str, code: str, data: str, stage: str, reason: str) -> None:
    told = {"tenantid": "demo", "knativeerrordest": dest, "knativeerrorcode": code, "knativeerrordata": data}
    (failure,) = failures(world, replace(LETTER, extensions=told))
    assert (failure.stage, failure.code) == (stage, reason)


@pytest.mark.parametrize(
    "event",
    [
        replace(LETTER, type="dev.wakeswap.publish.completed.v1"),
        replace(LETTER, type="dev.wakeswap.moderate.rejected.v1"),
        replace(LETTER, type="dev.wakeswap.dead_letter.failed.v1"),
        replace(LETTER, type="dev.knative.sources.ping"),
        replace(LETTER, extensions={}),
        replace(LETTER, extensions={"tenantid": "../x"}),
        replace(LETTER, extensions={"tenantid": "nobody-we-know"}),
        replace(LETTER, subject=""),
        replace(LETTER, subject="../../x"),
    ],
)
def test_no_failure_but_kept(world: World, event: Event) -> None:
    assert failures(world, event) == []
    assert len(world.store.list("system/dead-letter/").objects) == 1


@pytest.mark.parametrize("data", [{"a": 1}, "text", b"\x00\xff", None])
def test_original_is_kept(world: World, data: JsonValue | bytes) -> None:
    event = replace(LETTER, data=data)
    failures(world, event)
    failures(world, event)
    kept = json.loads(world.store.get(f"system/dead-letter/{event.digest}.json")[0])
    assert (kept["id"], kept["source"], kept["subject"], kept["tenantid"]) == ("e-1", "/wakeswap/moderate", JOB, "demo")
    assert kept["knativeerrorcode"] == "503"
    body = kept.get("data") if not isinstance(data, bytes) else base64.b64decode(kept["data_base64"])
    assert body == data

"""JobSink on one machine: one Job for an event, its tries, its end, and what a killed platform goes on with."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from infra.local.fields import ManifestError
from infra.local.manifests import load
from infra.local.serving.environment import Configs
from infra.local.serving.ledger import Ledger
from infra.local.serving.pods import PodRuntime
from infra.local.sinks.runner import JobSinks
from infra.local.sinks.spec import JobSink, parse_job_sink

EVENT = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/a", "ce-type": "t", "content-type": "application/json"}
WORK = """
import json, os, pathlib, sys
event = json.loads((pathlib.Path(os.environ["K_EVENT_PATH"]) / "event").read_text())
told = pathlib.Path(os.environ["TOLD"])
tries = len(list(told.iterdir()))
(told / f"{event['id']}.{tries}").write_text(json.dumps([event["data"], os.environ.get("K_SINK"), os.environ["MODE"]]))
sys.exit(int(os.environ["CODES"].split(",")[min(tries, os.environ["CODES"].count(","))]))
"""


def document(codes: str, told: Path, *, command: str = WORK, **job: Any) -> dict[str, Any]:
    env = [{"name": "CODES", "value": codes}, {"name": "TOLD", "value": str(told)}, {"name": "MODE", "value": "job"}]
    container = {"name": "main", "image": "x", "command": [sys.executable, "-c", command], "env": env}
    pod = {"restartPolicy": "Never", "containers": [container]}
    spec = {"template": {"spec": pod}, **job}
    return {
        "apiVersion": "sinks.knative.dev/v1alpha1",
        "kind": "JobSink",
        "metadata": {"name": "long", "namespace": "ns"},
        "spec": {"job": {"metadata": {"labels": {"app": "long"}}, "spec": spec}},
    }


def run(tmp_path: Path, sink: JobSink, work: Callable[[JobSinks, str, aiohttp.ClientSession], Awaitable[None]]) -> None:
    """`work` gets the sinks of a platform whose address it is told."""

    async def main() -> None:
        for name in ("logs", "volumes", "jobs", "pods"):
            (tmp_path / name).mkdir(exist_ok=True)
        async with aiohttp.ClientSession() as client:
            ledger = Ledger(tmp_path / "pods")
            runtime = PodRuntime(Configs(), ledger, tmp_path / "logs", tmp_path / "volumes", client, grace_limit=1)
            sinks = JobSinks([sink], runtime, tmp_path / "jobs", lambda _: "http://broker/", pause=0.01)
            app = web.Application()
            app.add_routes(sinks.routes())
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            sinks.start()
            address = f"http://127.0.0.1:{runner.addresses[0][1]}/jobsinks/ns/long"
            try:
                await work(sinks, address, client)
            finally:
                await sinks.stop()
                await runner.cleanup()

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


async def send(client: aiohttp.ClientSession, address: str, **changed: str) -> int:
    headers = {**EVENT, **{f"ce-{name}": value for name, value in changed.items()}}
    async with client.post(address, headers=headers, data=b'{"n": 1}') as answer:
        return answer.status


@pytest.fixture
def told(tmp_path: Path) -> Path:
    folder = tmp_path / "told"
    folder.mkdir()
    return folder


def test_an_event_is_one_job_however_often_it_comes(tmp_path: Path, told: Path) -> None:
    async def work(sinks: JobSinks, address: str, client: aiohttp.ClientSession) -> None:
        assert [await send(client, address) for _ in range(3)] == [202] * 3
        await until(sinks.idle)
        assert await send(client, address) == 202
        assert await send(client, address, id="2") == 202
        await until(sinks.idle)
        assert sinks.status() == {"long": {"waiting": 0, "running": 0, "done": 2, "failed": 0}}

    run(tmp_path, parse_job_sink(document("0", told)), work)
    assert sorted(path.name for path in told.iterdir()) == ["1.0", "2.1"]
    assert json.loads((told / "1.0").read_text()) == [{"n": 1}, "http://broker/", "job"]


def test_a_job_is_tried_again_up_to_its_limit(tmp_path: Path, told: Path) -> None:
    async def work(sinks: JobSinks, address: str, client: aiohttp.ClientSession) -> None:
        await send(client, address)
        await until(sinks.idle)
        assert sinks.status()["long"]["failed"] == 1

    run(tmp_path, parse_job_sink(document("75", told, backoffLimit=2)), work)
    assert len(list(told.iterdir())) == 3


def test_a_try_that_succeeds_ends_it(tmp_path: Path, told: Path) -> None:
    async def work(sinks: JobSinks, address: str, client: aiohttp.ClientSession) -> None:
        await send(client, address)
        await until(sinks.idle)
        assert sinks.status()["long"]["done"] == 1

    run(tmp_path, parse_job_sink(document("75,75,0", told)), work)
    assert len(list(told.iterdir())) == 3


def test_an_exit_code_may_end_it_at_once(tmp_path: Path, told: Path) -> None:
    policy = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [65]}}]}

    async def work(sinks: JobSinks, address: str, client: aiohttp.ClientSession) -> None:
        await send(client, address)
        await until(sinks.idle)
        assert sinks.status()["long"]["failed"] == 1

    run(tmp_path, parse_job_sink(document("65", told, podFailurePolicy=policy)), work)
    assert len(list(told.iterdir())) == 1


def test_a_job_that_takes_too_long_is_ended(tmp_path: Path, told: Path) -> None:
    slow = "import os, pathlib, time; (pathlib.Path(os.environ['TOLD']) / 'x').touch(); time.sleep(300)"

    async def work(sinks: JobSinks, address: str, client: aiohttp.ClientSession) -> None:
        await send(client, address)
        await until(sinks.idle)
        assert sinks.status()["long"]["failed"] == 1

    run(tmp_path, parse_job_sink(document("0", told, command=slow, activeDeadlineSeconds=2)), work)


def test_the_next_platform_goes_on_and_does_not_count_what_was_cut_off(tmp_path: Path, told: Path) -> None:
    slow = WORK.replace("sys.exit", "import time; time.sleep(300 if tries == 0 else 0); sys.exit")

    async def first(sinks: JobSinks, address: str, client: aiohttp.ClientSession) -> None:
        await send(client, address)
        await until(lambda: bool(list(told.iterdir())))

    async def second(sinks: JobSinks, address: str, client: aiohttp.ClientSession) -> None:
        await until(sinks.idle)
        assert sinks.status()["long"]["done"] == 1

    sink = parse_job_sink(document("0", told, command=slow, backoffLimit=0))
    run(tmp_path, sink, first)
    run(tmp_path, sink, second)
    assert len(list(told.iterdir())) == 2


def test_what_is_no_event_and_who_is_no_sink_are_refused(tmp_path: Path, told: Path) -> None:
    async def work(sinks: JobSinks, address: str, client: aiohttp.ClientSession) -> None:
        assert await send(client, address, specversion="0.3") == 400
        assert await send(client, address.replace("long", "other")) == 404
        assert sinks.idle()

    run(tmp_path, parse_job_sink(document("0", told)), work)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"completions": 2}, "spec.job.spec.completions"),
        ({"suspend": True}, "spec.job.spec.suspend"),
        ({"template": {"spec": {"restartPolicy": "OnFailure"}}}, "spec.job.spec.template.spec.restartPolicy"),
        ({"podFailurePolicy": {"rules": [{"action": "Ignore"}]}}, "spec.job.spec.podFailurePolicy.rules[0].action"),
    ],
)
def test_what_is_not_played_is_refused(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ManifestError) as refused:
        parse_job_sink(document("0", Path("/x"), **change))
    assert refused.value.field == field


def test_triggers_lead_to_job_sinks_and_bindings_to_their_jobs(tmp_path: Path, told: Path) -> None:
    broker = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "metadata": {"name": "b", "namespace": "ns"}}
    subscriber = {"ref": {"apiVersion": "sinks.knative.dev/v1alpha1", "kind": "JobSink", "name": "long"}}
    trigger = {
        **broker,
        "kind": "Trigger",
        "metadata": {"name": "t", "namespace": "ns"},
        "spec": {"broker": "b", "subscriber": subscriber},
    }
    subject = {"apiVersion": "batch/v1", "kind": "Job", "selector": {"matchLabels": {"app": "long"}}}
    sink = {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "b"}}
    binding = {
        "apiVersion": "sources.knative.dev/v1",
        "kind": "SinkBinding",
        "metadata": {"name": "s", "namespace": "ns"},
        "spec": {"subject": subject, "sink": sink},
    }

    def loaded(*docs: Mapping[str, Any]) -> Any:
        path = tmp_path / "all.yaml"
        path.write_text(yaml.safe_dump_all(docs))
        return load(path, lambda *_: {})

    found = loaded(broker, trigger, binding, document("0", told))
    assert [one.name for one in found.job_sinks] == ["long"]
    assert found.bindings[0].takes({"app": "long", "more": "x"})
    assert not found.bindings[0].takes({"app": "other"})
    with pytest.raises(ManifestError, match="JobSink"):
        loaded(broker, trigger, binding)

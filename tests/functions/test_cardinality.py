"""A thousand tenants, and what they and strangers may write, leave as many series as a few do: labels have bounds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.serving.support import JOB, App, event, job
from tests.unit.serving.test_emitter import Broker, broker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MANY, FEW = 1000, 60
ORIGINS = (
    "pass",
    "raise:NoFaceInSourceError",
    "raise:UnknownModelError",
    "raise:ModelLoadingError",
    "nothing",
    "bug:x",
)
TOKEN = "token-of-the-bucket"


def name(number: int) -> str:
    return f"tenant-{number}"


def key(number: int) -> str:
    return f"key-of-{name(number)}-0123456789"


@pytest.fixture
def server() -> Iterator[Broker]:
    with broker() as running:
        yield running


def settings() -> dict[str, str]:
    """Some have an installation of their own, some may do nothing at all."""
    tenants = {
        name(number): {
            "policy": {
                "isolation": "dedicated" if number % 7 == 0 else "shared",
                "jobs_per_minute": 1,
                "swappers": [f"swapper-of-{number}"] if number % 3 == 0 else [],
            }
        }
        for number in range(MANY)
    }
    return {
        "WAKESWAP_TENANTS": json.dumps(tenants),
        "WAKESWAP_API_KEYS": ",".join(f"{name(number)}={key(number)}" for number in range(MANY)),
        "WAKESWAP_NOTIFICATION_TOKEN": TOKEN,
        "WAKESWAP_RATE_PER_ADDRESS": "5",
    }


def series(app: App) -> set[str]:
    """Names and labels of what is shown."""
    text = app.client.get("/metrics").get_data(as_text=True)
    return {line.rpartition(" ")[0] for line in text.splitlines() if line.startswith("wakeswap_")}


def work(app: App, number: int) -> None:
    """An event of a tenant, with whatever stands in its attributes."""
    one = event(job(ORIGINS[number % len(ORIGINS)]), tenant=name(number), event_id=f"e-{number}")
    extras = {"priority": f"class-{number}", "wake": f"wake-{number}", "media": "image"}
    app.deliver(replace(one, extensions={**one.extensions, **extras}))
    app.deliver(replace(one, id=f"f-{number}", type=f"dev.wakeswap.stage-{number}.completed.v{number}"))
    app.deliver(replace(one, id=f"g-{number}", extensions={"tenantid": f"nobody-{number}", "proof": f"x.{number}"}))


def ask(app: App, number: int) -> None:
    """Requests of a tenant and of strangers, on paths that there are and on others."""
    headers = {"Authorization": f"Bearer {key(number)}"}
    body = {"source": "a", "target": "b", "options": {"swapper": f"model-{number}", "enhancer": f"model-{number}"}}
    app.client.post("/v1/jobs", json=body, headers=headers)
    app.client.get(f"/v1/jobs/job-{number:08}", headers=headers)
    app.client.get(f"/v1/jobs/{number}/../{number}?limit={number}")
    app.client.open(f"/path-{number}", method=f"VERB{number}")
    entry = {
        "bucket": {"name": f"bucket-{number}"},
        "object": {"key": f"tenants/{name(number)}/inbox/{number}", "eTag": "e"},
    }
    body = {"Records": [{"eventName": kind, "s3": entry} for kind in (f"Kind{number}", "ObjectCreated:Put")]}
    app.client.post("/events/s3", json=body, headers={"Authorization": f"Bearer {TOKEN}"})


def test_a_stage_shows_no_more_for_a_thousand_tenants(tmp_path: Path) -> None:
    app = App("relay", tmp_path, **settings())
    for number in range(FEW):
        work(app, number)
    few = series(app)
    for number in range(FEW, MANY):
        work(app, number)
    assert series(app) == few
    assert len(few) < 200
    assert not [one for one in few if "tenant-1" in one or JOB in one]


def test_the_front_door_shows_no_more_for_a_thousand_tenants(tmp_path: Path, server: Broker) -> None:
    app = App("intake", tmp_path, package="functions", K_SINK=server.address, **settings())
    for number in range(FEW):
        ask(app, number)
    few = series(app)
    for number in range(FEW, MANY):
        ask(app, number)
    assert series(app) == few
    assert len(few) < 200
    assert not [one for one in few if "tenant-1" in one or "bucket-" in one or "model-" in one]

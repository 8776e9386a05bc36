"""Everything that dashboards and alerts look at is shown by real processes that did real work."""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from shared.events.event import Event
from shared.storage.local import OWN
from shared.telemetry.declared import METRICS
from tests.local.machine import ROOT, Machine
from tests.local.test_enhance import NAME, install
from tests.local.test_pipeline import FACE, drop, post
from tests.local.test_trace import Webhook
from tests.servers.redis import Redis
from tests.unit.monitoring.promql import used

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ELSEWHERE = {"segments_asked_again": "tests/local/test_video_lost.py"}
"""What this run does not bring about, and where it is scraped."""
LAST = {"refusals_not_audited", "requests_unlimited"}
"""Shown when the store and redis fail, so not before the others."""


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    webhook = Webhook(410)
    yield webhook
    webhook.server.shutdown()
    webhook.server.server_close()


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    redis = Redis(tmp_path)
    redis.start()
    yield redis
    redis.stop()


@pytest.fixture
def machine(tmp_path: Path, webhook: Webhook, redis: Redis, model_files: Callable[[str], object]) -> Iterator[Machine]:
    """One tenant, two limits that are soon reached, an enhancer that nobody has fetched yet, and hardly any memory."""
    for name in ("centerface", "face_mesh", "open_nsfw", "pp_ocr_v6_small"):
        model_files(name)
    lock = install(tmp_path / "standin")
    shutil.copytree(ROOT / ".wakeswap/models", tmp_path / "models", copy_function=os.link)
    settings = {
        "WAKESWAP_MODEL_BUCKET": f"file:{lock.parent / 'bucket'}",
        "WAKESWAP_MODEL_LOCK": str(lock),
        "WAKESWAP_MODEL_BUDGET_MB": "1",
        "WAKESWAP_RATE_PER_ADDRESS": "1",
        "WAKESWAP_RATE_STORE": redis.address,
        "WAKESWAP_AUTH_FAILURES": "1",
        "WAKESWAP_TRUSTED_PROXIES": "1",
    }

    def limited(docs: list[dict[str, Any]]) -> None:
        for doc in docs:
            if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
                doc["data"] |= settings
            if doc["kind"] == "PingSource" and doc["metadata"]["name"] == "waiting":
                doc["spec"]["schedule"] = "*/5 * * * * *"

    tenants = webhook.tenants(max_concurrent=1, banned_words=["wakeswap"])
    one = Machine(tmp_path, limited, tenants=tenants, models=tmp_path / "models", idle=30)
    (one.state / "tenants").mkdir()
    (one.state / "tenants/acme.yaml").write_text("policy: {max_concurrent: none}")
    yield one
    one.down()


def test_every_metric_of_dashboards_and_alerts_is_shown(machine: Machine, redis: Redis) -> None:
    one, shown, wanted = machine, set[str](), used() - ELSEWHERE.keys()

    def until(done: Callable[[], bool]) -> None:
        """Scraping all the while, as Prometheus does."""
        one.until(lambda: bool(scrape(one, shown)) and done(), 120)

    one.up()
    drop(one, 2)  # the second waits, and finds the words' reader dropped to make room
    until(lambda: len(one.outcomes()) == 2)
    ask_for_better(one)
    until(lambda: len(one.outcomes()) == 3)
    assert post(one, FACE / "no_face.png", FACE / "one_face.jpg")[0] == 422
    held = post(one, FACE / "one_face.jpg", FACE / "one_face.jpg", prefer="wait=0")
    over = post(one, FACE / "one_face.jpg", FACE / "one_face.jpg", prefer="wait=0")
    assert (held[0], over[0]) == (202, 429)
    assert [anonymous(one, "203.0.113.1") for _ in range(3)] == [401, 429, 429]
    assert [anonymous(one, "203.0.113.2", "a-key-that-nobody-has") for _ in range(2)] == [401, 429]
    forge(one)
    until(lambda: shown >= wanted - LAST)
    with full_disk(one):
        assert [anonymous(one, "203.0.113.3") for _ in range(2)] == [401, 429]
    redis.kill()
    assert anonymous(one, "203.0.113.4") == 401, "let through unlimited, and still without a key"
    redis.start()
    until(lambda: shown >= wanted)


def scrape(machine: Machine, shown: set[str]) -> set[str]:
    """`shown` with what is shown now by the functions that are awake: asking one that sleeps would wake it."""
    for service, facts in machine.admin("/status")["services"].items():
        if facts["pods"]:
            shown |= seen(machine, service)
    return shown


def ask_for_better(machine: Machine) -> None:
    job = {"source": "one_face.jpg", "target": "one_face.jpg", "options": {"enhancer": NAME}}
    (machine.inbox / "bulk/.better").write_text(json.dumps(job))
    (machine.inbox / "bulk/.better").rename(machine.inbox / "bulk/better.job.json")


@contextmanager
def full_disk(machine: Machine) -> Iterator[None]:
    """While it holds, nothing can be written to the store: where new objects begin is gone."""
    begun = machine.objects / OWN / "tmp"
    begun.rename(begun.with_name("gone"))
    yield
    begun.with_name("gone").rename(begun)


def seen(machine: Machine, service: str) -> set[str]:
    """Names in the code of the metrics that a function's process shows now; none while it starts or ends."""
    try:
        with urllib.request.urlopen(machine.facts()["services"][service] + "/metrics", timeout=60) as answer:
            families = list(text_string_to_metric_families(answer.read().decode()))
    except urllib.error.HTTPError as error:
        with error:
            return set()
    names = {sample.name for family in families for sample in family.samples}
    return {name for name, metric in METRICS.items() if set(metric.series) <= names}


def anonymous(machine: Machine, address: str, key: str = "") -> int:
    """The status for a caller without a right key, as the proxy in front says of it."""
    headers = {"X-Forwarded-For": address} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(machine.facts()["services"]["intake"] + "/v1/jobs", headers=headers)
    try:
        urllib.request.urlopen(request, timeout=60).close()
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    return 200


def forge(machine: Machine) -> None:
    """An event that says it is ours: the stage refuses it, and the broker buries it."""
    event = Event(id="forged", source="/wakeswap/detect", type="dev.wakeswap.detect.completed.v1", subject="0b7e4a4e")
    headers = {"ce-specversion": "1.0", "ce-id": event.id, "ce-source": event.source, "ce-type": event.type,
               "ce-subject": event.subject, "ce-tenantid": "demo", "Content-Type": "application/json"}  # fmt: skip
    request = urllib.request.Request(machine.facts()["platform"] + "/wakeswap/default", b"{}", headers)
    urllib.request.urlopen(request, timeout=30).close()

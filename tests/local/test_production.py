"""Production's stage graph on one machine: its manifests as they are, less what only a cluster has, each by name. Every
stage works: a picture, one that is enhanced, a refusal, a dead letter; the webhook hears of each end, each is metered.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests.contract.components import of_kind, rendered
from tests.contract.test_topology import STAGES
from tests.local.machine import ROOT, Machine, Receiver
from tests.local.test_enhance import NAME, install, woken
from tests.local.test_metering import BROKEN, add_broken, drop, months, report, usages
from tests.local.test_pipeline import FACE, post, receiver

__all__ = ["receiver"]
pytestmark = pytest.mark.slow

Docs = list[dict[str, Any]]
BROUGHT = ("Namespace", "Secret", "IntegrationSource")
"""Kinds that this machine's own overlay brings: who may do what, and how uploads are heard of."""
WATCHING = ("PodMonitor", "PrometheusRule")
"""Kinds of the Prometheus operator: what they name is scraped by hand in test_metrics.py."""
CONFIGS = ("kafka-broker", "wakeswap-dashboards")
"""ConfigMaps for Kafka and for Grafana."""
VALUES = {
    *("WAKESWAP_STORE_URL", "WAKESWAP_MODEL_CACHE", "WAKESWAP_TENANTS"),
    *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"),
}
"""Of the stages' ConfigMap: where the bucket, the node's disk and the collector are, and who the tenants are."""
BESIDE = "retention"
"""Objects of this name run by the hour beside the graph, as a CronJob; here retention is run by hand."""
POOL = ("nodeSelector", "tolerations")
"""Fields of a pod that name nodes."""
GPU, TOLD = "nvidia.com/gpu", ("WAKESWAP_DEVICE", "WAKESWAP_GPU_WAIT_SECONDS")
"""A limit of containers, and what their processes are told of it."""
BROKER = {"eventing.knative.dev/broker.class": "Kafka"}
"""The class that keeps the events there; this machine has its own."""
FOR_VIDEOS = {"split", "assemble"}
"""Stages that no picture wakes; test_video.py plays them."""
PATIENCE = {"retry": 4, "backoffDelay": "PT0.2S"}
"""Of the Trigger `enhance`, whose dead letter the test waits for: production's ten tries last for minutes."""


def rehearsed(docs: Docs) -> None:
    """Production's objects in place of the local overlay's, less what is named above. All of it must be there."""
    own = [doc for doc in docs if doc["kind"] in (*BROUGHT, "ConfigMap")]
    stages: Docs = [doc for doc in json.loads(json.dumps(rendered("production"))) if doc["kind"] not in BROUGHT]
    taken = configured(own, [doc for doc in stages if doc["kind"] == "ConfigMap"])
    for doc in stages:
        if doc["apiVersion"].startswith("serving."):
            taken |= without_nodes(doc["spec"]["template"]["spec"])
        if doc["kind"] == "Broker":
            assert doc["metadata"].pop("annotations") == BROKER
            assert doc["spec"].pop("config")
        if doc["kind"] in WATCHING:
            taken.add(doc["kind"])
        if doc["kind"] == "CronJob":
            taken.add(doc["metadata"]["name"])
        if (doc["kind"], doc["metadata"]["name"]) == ("Trigger", "enhance"):
            doc["spec"]["delivery"] |= PATIENCE
    assert taken == {*POOL, GPU, *TOLD, *WATCHING, *CONFIGS, *VALUES, BESIDE}, "nothing is named that is not there"
    left = (*WATCHING, "ConfigMap")
    docs[:] = [*own, *(doc for doc in stages if doc["metadata"]["name"] != BESIDE and doc["kind"] not in left)]


def configured(own: Docs, configs: Docs) -> set[str]:
    """Give the machine's ConfigMap what production's says otherwise; what it does not take over is told."""
    theirs = {doc["metadata"]["name"]: doc["data"] for doc in configs}
    data = theirs.pop("wakeswap")
    (mine,) = (doc["data"] for doc in own if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap")
    mine |= {name: value for name, value in data.items() if name not in VALUES}
    return {*theirs, *(VALUES & data.keys())}


def without_nodes(pod: dict[str, Any]) -> set[str]:
    """What was taken out of a pod."""
    taken = {field for field in POOL if pod.pop(field, None)}
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        if container["resources"]["limits"].pop(GPU, None):
            taken.add(GPU)
        kept = [entry for entry in container.get("env", []) if entry["name"] not in TOLD]
        taken |= {entry["name"] for entry in container.get("env", []) if entry not in kept}
        container["env"] = kept
    return taken


@pytest.fixture
def machine(tmp_path: Path, model_files: Callable[[str], object], receiver: Receiver) -> Iterator[Machine]:
    for name in ("centerface", "face_mesh", "open_nsfw", "pp_ocr_v6_small"):
        model_files(name)
    lock = install(tmp_path / "standin")
    add_broken(lock)
    shutil.copytree(ROOT / ".wakeswap/models", tmp_path / "models", copy_function=os.link)

    def with_enhancers(docs: Docs) -> None:
        (data,) = (doc["data"] for doc in docs if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap")
        data |= {"WAKESWAP_MODEL_BUCKET": f"file:{lock.parent / 'bucket'}", "WAKESWAP_MODEL_LOCK": str(lock)}

    one = Machine(tmp_path, rehearsed, with_enhancers, tenants=receiver.tenants(), models=tmp_path / "models")
    for name in ("one_face.jpg", "same_face_twice.jpg", "no_face.png"):
        shutil.copy(FACE / name, one.inbox / name)
    yield one
    one.down()


@pytest.mark.timeout(600)
def test_the_graph_of_production_ends_every_job_tells_of_it_and_meters_it(machine: Machine, receiver: Receiver) -> None:
    machine.up()
    status, answer = post(machine, FACE / "one_face.jpg", FACE / "same_face_twice.jpg")
    assert (status, answer["status"]) == (200, "succeeded"), answer
    assert [entry["stage"] for entry in answer["stages"]] == ["moderate", "detect", "swap", "publish"]
    jobs = {"plain": answer["id"]}
    for name, target, options in (
        ("better", "same_face_twice.jpg", {"enhancer": NAME}),
        ("refused", "no_face.png", {}),
        ("failing", "same_face_twice.jpg", {"enhancer": BROKEN}),
    ):
        drop(machine, name, target, **options)
        machine.until(lambda: len(machine.outcomes()) > len(jobs), 300)
        (jobs[name],) = machine.outcomes().keys() - set(jobs.values())
    machine.until(lambda: len(usages(machine)) == len(receiver.told) == len(jobs) and machine.asleep(), 120)
    ends = {name: machine.outcomes()[job]["type"].split(".")[2:4] for name, job in jobs.items()}
    assert ends == {
        "plain": ["publish", "completed"],
        "better": ["publish", "completed"],
        "refused": ["detect", "rejected"],
        "failing": ["dead_letter", "failed"],
    }
    passed = {path.name for path in (machine.objects / "tenants/demo/jobs" / jobs["better"]).iterdir()}
    assert passed >= {"moderate", "detect", "swap", "enhance", "publish"}
    (letter,) = (machine.objects / "system/dead-letter").iterdir()
    assert json.loads(letter.read_text())["subject"] == jobs["failing"]
    assert machine.outcomes()[jobs["failing"]]["data"]["stage"] == "enhance"
    told = {message: body["type"] for message, body in receiver.told}
    assert told == {f"{jobs[name]}.{end}": f"job.{end}" for name, (_, end) in ends.items()}, "each end, once"
    metered(machine, jobs, ends)
    services = of_kind(rendered("production"), "Service", "serving.knative.dev")
    assert sorted(name.replace("-", "_") for name in services) == STAGES, "the same stages, so nothing was left out"
    assert woken(machine) == set(services) - FOR_VIDEOS, "and each of them has worked"


def metered(machine: Machine, jobs: dict[str, str], ends: dict[str, list[str]]) -> None:
    """A record a job, and a report that is their sum."""
    found = {usage["job"]: usage for usage in usages(machine)}
    assert {job: found[job]["measures"]["outcome"] for job in found} == {
        jobs[name]: end for name, (_, end) in ends.items()
    }
    assert {found[jobs[name]]["bill"]["cost"] != "0" for name in ("plain", "better", "refused")} == {True}
    assert found[jobs["failing"]]["bill"]["cost"] == "0"
    assert "enhance" in {use["stage"] for use in found[jobs["better"]]["stages"]}
    reports = [json.loads(report(machine, month, "json")) for month in months(machine)]
    assert sorted(one["job"] for each in reports for one in each["jobs"]) == sorted(found), "once"
    exact = sum((Fraction(usage["bill"]["cost"]) for usage in found.values()), Fraction(0))
    shown = sum((Decimal(each["totals"]["EUR"]) for each in reports), Decimal(0))
    assert abs(Fraction(shown) - exact) <= Fraction(len(reports), 200)

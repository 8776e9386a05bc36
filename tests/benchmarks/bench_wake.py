"""What sleeping costs: one event to each stage asleep and awake, the whole chain, and what each stage imports.

    python -m tests.benchmarks.bench_wake

The product's own manifests under the local platform, real processes, the default models already in the cache.

- cold: from the request to a stage's Service while no process of it runs, to its answer: init step, process start,
  imports, models loaded and warmed, readiness probe (polled every 50 ms as Knative does), and the work itself.
- warm: the same event for another job right after it, so only the work.
- Stages are asked one by one, without Triggers: what they answer or publish goes nowhere. Their events are those of a
  job that ran before and asked to be enhanced. notify sends to a receiver on this machine. The enhancer is a stand-in
  that does next to nothing, so that enhance shows what waking and handling a picture cost, and no restorer's work.
- hello is the floor: a bare gunicorn and flask that says hello, woken by the same platform.
- chain: `POST /v1/jobs` with `Prefer: wait` to its answer, with every Trigger, wake-ahead included, not enhanced.
- import: CPU of a fresh process from its start until everything that the stage needs is imported.

Medians over ROUNDS. Exits 1 when a light stage imports for longer than its budget. The last line is JSON.
"""

from __future__ import annotations

import compileall
import http.client
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shared.events import contract
from shared.events.codec import decode, encode_binary
from shared.events.event import Event
from shared.jobs import records
from shared.serving.record import Record
from shared.storage import keys
from shared.storage.local import LocalStore
from tests.cold_start.test_import_budget import LIGHT_SECONDS, fresh
from tests.local.machine import ROOT, Machine, Receiver
from tests.local.test_enhance import NAME, install

ROUNDS = 3
LIMIT_SECONDS = 45
"""No further round begins later than this: a busy machine gets fewer."""
WARM = 3
"""Warm tries in each round."""
TENANT = "demo"
FACE = ROOT / "tests/data/face"
SOURCE, TARGET = FACE / "one_face.jpg", FACE / "three_faces_small_mid_large.jpg"
CHAIN = ("moderate", "detect", "swap", "enhance", "publish", "notify")
STAGES = ("intake", *CHAIN, "meter", "dead_letter")
LIGHT = ("intake", "notify", "meter", "dead_letter")
HELLO = "hello"
ANSWERS = {"intake": 202, "dead_letter": 202, "notify": 204, "meter": 204}
"""Status of work done, where it is not 200 with the next event."""
SQS = "dev.knative.connector.event.aws-sqs"

IMPORT = """
import os, time
from shared.vision.threads import quiet
quiet(os.environ)  # as gunicorn.conf.py does
import shared.serving.app
import functions.{stage}.main as main
if getattr(main, "FRONT_DOOR", False):
    import shared.serving.front
if {models}:
    import shared.models.build
elif hasattr(main, "setup"):
    import shared.usage.pricing
print(time.process_time())
"""


@dataclass
class Times:
    """Seconds of each try; `init` and `ready` are the platform's notes of the cold ones."""

    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    init: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)

    def seconds(self) -> dict[str, float]:
        return {"cold_s": median(self.cold), "warm_s": median(self.warm)}


def main() -> int:
    for folder in ("functions", "shared", "model-warmup"):
        compileall.compile_dir(ROOT / folder, quiet=1)  # as `make` does after installing
    imports = {stage: import_cpu(stage) for stage in STAGES}
    fill_model_cache()
    with tempfile.TemporaryDirectory(prefix="bench-wake-") as folder:
        chain, sample = measure_chain(Path(folder) / "chain")
        times = measure_stages(Path(folder) / "stages", sample)
    show(times, chain, imports)
    over = [stage for stage in LIGHT if imports[stage] > LIGHT_SECONDS]
    for stage in over:
        print(f"too heavy: {stage} imports for {imports[stage]} s of CPU, a light stage has {LIGHT_SECONDS} s")
    stages = {stage: {**times[stage].seconds(), "import_cpu_s": imports[stage]} for stage in STAGES}
    print(json.dumps({"stages": stages, "chain": chain.seconds()}))
    return 1 if over else 0


def median(seconds: list[float]) -> float:
    return round(statistics.median(seconds), 3)


def import_cpu(stage: str) -> float:
    return median([float(fresh(IMPORT.format(stage=stage, models=stage not in LIGHT))) for _ in range(ROUNDS)])


def rounds() -> Iterator[int]:
    begun = time.monotonic()
    return itertools.takewhile(lambda _: time.monotonic() < begun + LIMIT_SECONDS, range(ROUNDS))


def fill_model_cache() -> None:
    environ = {**os.environ, "WAKESWAP_MODEL_CACHE": str(ROOT / ".wakeswap/models")}
    subprocess.run([sys.executable, "model-warmup/main.py", "--all"], cwd=ROOT, env=environ, check=True)


@contextmanager
def running(folder: Path, *changes: Callable[[list[dict[str, Any]]], None], idle: float) -> Iterator[Machine]:
    folder.mkdir()
    receiver, lock = Receiver(), install(folder / "standin")
    shutil.copytree(ROOT / ".wakeswap/models", folder / "models", copy_function=os.link)

    def with_enhancer(docs: list[dict[str, Any]]) -> None:
        (data,) = (doc["data"] for doc in docs if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap")
        data |= {"WAKESWAP_MODEL_BUCKET": f"file:{lock.parent / 'bucket'}", "WAKESWAP_MODEL_LOCK": str(lock)}

    tenants, models = receiver.tenants(), folder / "models"
    machine = Machine(folder, with_enhancer, *changes, tenants=tenants, models=models, idle=idle)
    try:
        machine.up()
        yield machine
    finally:
        machine.down()
        receiver.close()


@dataclass(frozen=True)
class Sample:
    """A job that ran: its objects, and the event that each stage got."""

    store: LocalStore
    job: str
    events: Mapping[str, Event]

    def another(self, store: LocalStore, stage: str) -> Event:
        """The stage's event as one of a new job, whose folder holds in `store` what earlier stages left."""
        new, event = str(uuid.uuid4()), self.events[stage]
        for entry in self.store.list(keys.job(TENANT, self.job)).objects:
            name = entry.key.rpartition("/")[2]
            if not name.startswith(("work.", "outcome.")):
                data, info = self.store.get(entry.key)
                store.put(entry.key.replace(self.job, new), data, metadata=info.metadata)
        extensions = {name: value if name != "partitionkey" else new for name, value in event.extensions.items()}
        data = json.loads(json.dumps(event.data).replace(self.job, new))
        return replace(event, id=str(uuid.uuid4()), subject=new, extensions=extensions, data=data)


def measure_chain(folder: Path) -> tuple[Times, Sample]:
    times = Times()
    with running(folder, idle=3) as machine:
        store = LocalStore(machine.objects)
        put_pictures(store)
        for _ in rounds():
            machine.until(machine.asleep, 30)
            times.cold.append(whole_job(machine)[0])
            times.warm += [whole_job(machine)[0] for _ in range(WARM)]
        _, job = whole_job(machine, enhancer=NAME)
        machine.until(machine.asleep, 30)
    return times, sample_of(store, job)


def put_pictures(store: LocalStore) -> None:
    for name, path in (("a.jpg", SOURCE), ("b.jpg", TARGET)):
        store.put(keys.inbox(TENANT, name), path.read_bytes())


def whole_job(machine: Machine, **options: str) -> tuple[float, str]:
    """Seconds from the request to the finished job, and its id."""
    body = json.dumps({"source": "a.jpg", "target": "b.jpg", "options": options}).encode()
    headers = {"Authorization": f"Bearer {machine.key()}", "Content-Type": "application/json", "Prefer": "wait=60"}
    seconds, status, answer = post(machine, "intake", "/v1/jobs", headers, body)
    assert status == 200, answer
    return seconds, str(json.loads(answer)["id"])


def sample_of(store: LocalStore, job: str) -> Sample:
    record = records.find(store, TENANT, job)
    assert record
    events = {"moderate": contract.first("intake", TENANT, record.job, job)}
    for stage, following in itertools.pairwise(CHAIN):
        events[following] = reply_of(store, job, stage)
    events["meter"] = events["notify"]
    lost = {"knativeerrordest": "http://swap.wakeswap.svc.cluster.local/", "knativeerrorcode": "503"}
    events["dead_letter"] = replace(events["swap"], extensions={**events["swap"].extensions, **lost})
    return Sample(store, job, events)


def reply_of(store: LocalStore, job: str, stage: str) -> Event:
    """What a stage answered, as its record keeps it."""
    (key,) = [entry.key for entry in store.list(keys.job(TENANT, job) + f"{stage}/work.").objects]
    reply = Record.decode(store.get(key)[0]).reply
    assert reply
    return decode(dict(reply.headers), reply.body, limit=1_000_000)


def measure_stages(folder: Path, sample: Sample) -> dict[str, Times]:
    times = {name: Times() for name in (HELLO, *STAGES)}
    with running(folder, alone, idle=0.5) as machine:
        put_pictures(LocalStore(machine.objects))
        for _ in rounds():
            for name, found in times.items():
                machine.until(machine.asleep, 30)
                found.cold.append(deliver(machine, name, sample))
                found.warm += [deliver(machine, name, sample) for _ in range(WARM)]
                wake = machine.admin("/status")["services"][service(name)]["wakes"][-1]
                found.init.append(wake["init_done"] - wake["created"])
                found.ready.append(wake["ready"] - wake["init_done"])
    return times


def alone(docs: list[dict[str, Any]]) -> None:
    """Stages that nothing calls but this benchmark, and the floor beside them."""
    docs[:] = [doc for doc in docs if doc["kind"] not in ("Trigger", "PingSource", "IntegrationSource")]
    command = ["gunicorn", "--threads", "4", "tests.benchmarks.hello:app"]
    container = {"name": HELLO, "image": HELLO, "command": command}
    template = {"spec": {"containers": [container]}}
    docs.append({"apiVersion": "serving.knative.dev/v1", "kind": "Service",
                 "metadata": {"name": HELLO, "namespace": "wakeswap"}, "spec": {"template": template}})  # fmt: skip


def service(name: str) -> str:
    return name.replace("_", "-")


def deliver(machine: Machine, name: str, sample: Sample) -> float:
    """Seconds of one event at a stage's Service, from the request to the answer."""
    store = LocalStore(machine.objects)
    event = upload(store) if name == "intake" else sample.another(store, name) if name in STAGES else None
    headers, body = encode_binary(machine.signed(event)) if event else ({}, b"")
    seconds, status, answer = post(machine, service(name), "/", headers, body)
    assert status == ANSWERS.get(name, 200), (name, status, answer)
    assert b'"code"' not in answer, answer  # a rejection is a 200 too
    return seconds


def upload(store: LocalStore) -> Event:
    """A pair of pictures is in the inbox; what the queue says of it."""
    folder = keys.inbox(TENANT, str(uuid.uuid4()))
    for name, path in (("source.jpg", SOURCE), ("target.jpg", TARGET)):
        store.put(f"{folder}/{name}", path.read_bytes())
    facts = {"bucket": {"name": "wakeswap"}, "object": {"key": f"{folder}/target.jpg"}}
    data: Any = {"Records": [{"eventName": "ObjectCreated:Put", "s3": facts}]}
    return Event(str(uuid.uuid4()), "/sqs", SQS, datacontenttype="application/json", data=data)


def post(machine: Machine, name: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[float, int, bytes]:
    address = urlsplit(str(machine.facts()["services"][name]))
    with closing(http.client.HTTPConnection(str(address.hostname), address.port, timeout=120)) as connection:
        begun = time.perf_counter()
        connection.request("POST", path, body, dict(headers))
        answer = connection.getresponse()
        data = answer.read()
        return time.perf_counter() - begun, answer.status, data


def show(times: Mapping[str, Times], chain: Times, imports: Mapping[str, float]) -> None:
    print(f"{'':12}{'cold s':>8}{'init s':>8}{'ready s':>9}{'warm s':>8}{'import CPU s':>14}")
    for name, found in times.items():
        numbers = f"{median(found.cold):8.2f}{median(found.init):8.2f}{median(found.ready):9.2f}"
        loaded = f"{imports[name]:14.2f}" if name in imports else ""
        print(f"{name:12}{numbers}{median(found.warm):8.3f}{loaded}")
    print(f"{'chain':12}{median(chain.cold):8.2f}{'':17}{median(chain.warm):8.3f}")
    tries = len(chain.cold), len(times[HELLO].cold)
    print(f"medians of {tries[0]} (chain) and {tries[1]} (stages) cold tries, {WARM} warm ones after each")
    print(f"{HELLO} is the floor: bare gunicorn and flask; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    sys.exit(main())

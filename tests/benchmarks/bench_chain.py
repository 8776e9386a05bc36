"""What a chain of sleeping functions costs, and what wake-ahead and fusing save: cold event to result, with a picture.

    python -m tests.benchmarks.bench_chain

The product's own manifests under the local platform, real processes, the default models already in the cache; one job
over HTTP (`POST /v1/jobs`, `Prefer: wait`) while every function sleeps, from the request to its answer.

- sequential: without the wake-ahead Triggers, so each stage starts when its event comes.
- wake-ahead: as delivered; fused: with the component `fused-front` (detect, swap and publish are one process).
- warm: the same job right after it, with wake-ahead.
- slowest stage: the longest cold start and work of one stage, in the sequential runs, where none disturbs another.
- CPU: of every process that the job started, init steps included, until the answer; `floor_s` is what no order of
  starts gets under with it.

The variants take turns, so that a machine's other load meets all alike; medians over ROUNDS. The picture shows each
variant's median round. The last line is JSON.
"""

from __future__ import annotations

import compileall
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from shared.serving.record import Record
from shared.storage.local import LocalStore
from tests.benchmarks.bench_wake import TENANT, fill_model_cache, median, put_pictures, running, whole_job
from tests.benchmarks.timeline import Bar, Row, draw
from tests.contract.components import rendered
from tests.local.machine import ROOT, Change, Machine

ROUNDS = 5
LIMIT_SECONDS = 90
"""No further round begins later than this."""
WARM = 3
IDLE_SECONDS = 8
"""Longer than the slowest chain, so that no stage falls asleep between its own work and the warm tries."""
SERVICES = ("intake", "moderate", "detect", "swap", "publish", "fused")
STAGES = ("moderate", "detect", "swap", "publish")


def without_wake_ahead(docs: list[dict[str, Any]]) -> None:
    docs[:] = [doc for doc in docs if not doc["metadata"]["name"].startswith("wake-")]


def fused(docs: list[dict[str, Any]]) -> None:
    configs = [doc for doc in docs if doc["kind"] == "ConfigMap"]
    component = [doc for doc in rendered("local", "fused-front") if doc["kind"] != "ConfigMap"]
    docs[:] = [*configs, *json.loads(json.dumps(component))]


VARIANTS: Mapping[str, tuple[Change, ...]] = {
    "sequential": (without_wake_ahead,),
    "wake_ahead": (),
    "fused": (fused,),
}


@dataclass(frozen=True)
class Run:
    """One cold job; times in seconds since its request."""

    seconds: float
    cpu: float
    wakes: Mapping[str, tuple[float, float, float]]
    """By Service: the pod made, its init steps done, ready."""
    works: Mapping[str, tuple[float, float]]
    """By stage: begun, done."""

    def rows(self) -> list[Row]:
        bars = {"caller": [Bar("wait", 0.0, self.seconds)]}
        for service, (made, init, ready) in self.wakes.items():
            bars[service] = [Bar("init", made, init), Bar("start", init, ready)]
        for stage, (begun, done) in self.works.items():
            bars["fused" if "fused" in bars and stage not in bars else stage].append(Bar("work", begun, done))
        return [Row(name, found) for name, found in bars.items()]

    def alone(self) -> dict[str, float]:
        """Each stage's start and work without the time in between."""
        found = {}
        for name, (made, _, ready) in self.wakes.items():
            begun, done = self.works.get(name, (0.0, 0.0))
            found[name] = ready - made + done - begun
        return found


@dataclass
class Times:
    cold: list[Run] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)

    def median_run(self) -> Run:
        return sorted(self.cold, key=lambda run: run.seconds)[len(self.cold) // 2]


def main() -> int:
    for folder in ("functions", "shared", "model-warmup"):
        compileall.compile_dir(ROOT / folder, quiet=1)
    fill_model_cache()
    times = {name: Times() for name in VARIANTS}
    with tempfile.TemporaryDirectory(prefix="bench-chain-") as folder, ExitStack() as stack:
        machines = {
            name: stack.enter_context(running(Path(folder) / name, *changes, idle=IDLE_SECONDS))
            for name, changes in VARIANTS.items()
        }
        for machine in machines.values():
            put_pictures(LocalStore(machine.objects))
        measure(machines, times)
    path = Path(tempfile.gettempdir()) / "wakeswap-chain.png"
    runs = {name: found.median_run() for name, found in times.items()}
    draw(path, {f"{name.replace('_', '-')}: {run.seconds:.2f} s": run.rows() for name, run in runs.items()})
    report(times, path)
    return 0


def measure(machines: Mapping[str, Machine], times: Mapping[str, Times]) -> None:
    ends = time.monotonic() + LIMIT_SECONDS
    for number in range(ROUNDS):
        if number and time.monotonic() > ends:
            break
        for name, machine in machines.items():
            machine.until(machine.asleep, 60)
            times[name].cold.append(cold_job(machine))
            times[name].warm += [whole_job(machine)[0] for _ in range(WARM)]


def cold_job(machine: Machine) -> Run:
    platform = psutil.Process(machine.pid)
    before, begun = reaped(platform), time.time()
    seconds, job = whole_job(machine)
    living = sum(sum(process.cpu_times()[:2]) for process in platform.children(recursive=True))
    cpu = reaped(platform) - before + living
    wakes = {}
    for name, service in machine.admin("/status")["services"].items():
        fresh = [wake for wake in service["wakes"] if wake["created"] >= begun - 0.1 and wake["ready"]]
        if fresh and name in SERVICES:
            wakes[name] = tuple(fresh[0][key] - begun for key in ("created", "init_done", "ready"))
    ordered = {name: wakes[name] for name in SERVICES if name in wakes}
    return Run(seconds, cpu, ordered, works(machine, job, begun))


def reaped(platform: psutil.Process) -> float:
    """CPU seconds of children that have ended."""
    times = platform.cpu_times()
    return float(times.children_user + times.children_system)


def works(machine: Machine, job: str, begun: float) -> dict[str, tuple[float, float]]:
    found = {}
    for stage in STAGES:
        (path,) = (machine.objects / f"tenants/{TENANT}/jobs/{job}/{stage}").glob("work.*")
        record = Record.decode(path.read_bytes())
        found[stage] = (record.started - begun, record.finished - begun)
    return found


def report(times: Mapping[str, Times], picture: Path) -> None:
    cores = os.cpu_count() or 1
    alone = [run.alone() for run in times["sequential"].cold]
    stages = {name: median([run[name] for run in alone if name in run]) for name in ("intake", *STAGES)}
    print(f"{'':12}{'cold s':>8}{'CPU s':>8}{'CPU / cores':>13}{'warm s':>8}")
    for name, found in times.items():
        cold, cpu = median([run.seconds for run in found.cold]), median([run.cpu for run in found.cold])
        print(f"{name:12}{cold:8.2f}{cpu:8.2f}{cpu / cores:13.2f}{median(found.warm):8.3f}")
    print("one stage's start and work, alone: " + ", ".join(f"{name} {value:.2f}" for name, value in stages.items()))
    floor = floor_of(times["wake_ahead"].cold, cores)
    print(f"{floor:.2f} s is the floor with wake-ahead on {cores} cores: nobody is woken before intake is ready,")
    print("which fills one core, and the CPU of all others is divided by the cores, as if they always filled all")
    rounds = len(times["fused"].cold)
    print(f"medians of {rounds} cold tries, {WARM} warm ones after each; {cores} cores, load {os.getloadavg()[0]:.1f}")
    print(f"timeline: {picture}")
    numbers = {f"{name}_s": median([run.seconds for run in found.cold]) for name, found in times.items()}
    numbers |= {f"{name}_cpu_s": median([run.cpu for run in found.cold]) for name, found in times.items()}
    numbers |= {f"{name}_best_s": round(min(run.seconds for run in found.cold), 3) for name, found in times.items()}
    warm = median(times["wake_ahead"].warm)
    print(json.dumps({"slowest_stage_s": max(stages.values()), "warm_s": warm, "floor_s": floor, **numbers}))


def floor_of(runs: Sequence[Run], cores: int) -> float:
    """Seconds that no order of starts gets under; of the run with the least CPU, since load adds to it."""
    least = min(runs, key=lambda run: run.cpu)
    ready = min(run.wakes["intake"][2] for run in runs)
    return round(ready + (least.cpu - ready) / cores, 3)


if __name__ == "__main__":
    sys.exit(main())

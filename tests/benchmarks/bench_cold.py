"""From a started process to a loaded swapper of 530 MB, beside reading its file, onnxruntime and insightface.

    python -m tests.benchmarks.bench_cold

Every try is a fresh process; the ways take turns, medians over ROUNDS. All load the same stand-in for inswapper (full
size, seeded weights, kept in .wakeswap/benchmarks) and are timed from the end of their imports, which are told apart:

- read: the file read once, 4 MiB at a time, by a process that does nothing else.
- ours: the product's registry with an empty memory of everything: cache looked up, adapter, embedder and swapper made.
  The init step has run before, as `model-warmup` would: the files are in the cache, and their graphs are optimised.
- ort: plain onnxruntime. peer: insightface's own INSwapper.

The page cache is warm; one more round has the files dropped from it first, where the kernel obliges. Memory is the
process's peak (VmHWM), after the load and after runs. The first run is compared with the median of the next. The
second model is loaded by a process that has loaded and run the first. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from shared.models import build
from shared.models.cache import ModelCache
from shared.models.catalog import Catalog
from shared.settings import ModelSettings

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".wakeswap" / "benchmarks"
CACHE = PLACE / "cache"
CATALOG = PLACE / "catalog.pickle"
ROUNDS = 5
LIMIT_SECONDS = 100
"""No further round begins later than this: a busy machine gets fewer."""
STEADY = 3
PIECE = 4 << 20

Numbers = dict[str, float]


def main() -> None:
    catalog = prepared()
    model = ModelCache(CACHE).ensure(catalog.model("full"))["model"]
    print(f"{model.name}: {model.stat().st_size / 1e6:.0f} MB; load average {os.getloadavg()[0]:.1f}", flush=True)
    tries: dict[str, list[Numbers]] = {"read": [], "ours": [], "ort": [], "peer": []}
    started = time.monotonic()
    while len(tries["read"]) < ROUNDS and (not tries["read"] or time.monotonic() - started < LIMIT_SECONDS):
        for way, found in tries.items():
            found.append(fresh(way, model))
    medians = {way: median(found) for way, found in tries.items()}
    cold = {way: fresh(way, model, "cold") for way in ("read", "ours")}
    runs = fresh("runs", model)
    table(medians, cold, runs)
    print(f"rounds {len(tries['read'])}, load average {os.getloadavg()[0]:.1f}")
    print(json.dumps(summary(medians, runs, model)))


def prepared() -> Catalog:
    """Both stand-ins in the cache, with their graphs, as an init step leaves them."""
    from tests.standins import full_size

    catalog = full_size.catalogue(PLACE)
    settings, started = ModelSettings(cache=CACHE), time.monotonic()
    for spec in catalog.models.values():
        build.prepare(settings, ModelCache(CACHE).ensure(spec))
    CATALOG.write_bytes(pickle.dumps(catalog))
    print(f"init step: {time.monotonic() - started:.1f} s", flush=True)
    return catalog


def fresh(way: str, model: Path, cold: str = "") -> Numbers:
    """What a new process says of itself, and `total`: seconds from before it was started."""
    if cold:
        forget(CACHE)
    command = [sys.executable, "-m", "tests.benchmarks.bench_cold", way, str(model)]
    before = time.time()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    numbers: Numbers = json.loads(done.stdout.splitlines()[-1])
    return {**numbers, "total": numbers["loaded_at"] - before}


def forget(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def median(found: list[Numbers]) -> Numbers:
    return {name: statistics.median(numbers[name] for numbers in found) for name in found[0]}


def table(medians: dict[str, Numbers], cold: dict[str, Numbers], runs: Numbers) -> None:
    print(f"{'':<12}{'imports':>10}{'load':>10}{'in all':>10}{'peak MB':>10}")
    rows = [*medians.items(), *((f"{way}, cold", numbers) for way, numbers in cold.items())]
    for name, row in rows:
        print(f"{name:<12}{row['imports']:>9.2f}s{row['load']:>9.2f}s{row['total']:>9.2f}s{row['peak']:>10.0f}")
    print(f"first run {runs['first']:.2f} s, then {runs['steady']:.2f} s; peak with runs {runs['peak_ready']:.0f} MB")
    print(f"CPU of the first run {runs['first_cpu']:.2f} s, then {runs['steady_cpu']:.2f} s")
    print(f"second model: loaded in {runs['second']:.2f} s, {runs['second_mb']:.0f} MB more")


def summary(medians: dict[str, Numbers], runs: Numbers, model: Path) -> Numbers:
    found = {f"{way}_s": round(numbers["load"], 3) for way, numbers in medians.items()}
    return {
        "read_s": found["read_s"],
        "ours_s": found["ours_s"],
        "ort_s": found["ort_s"],
        "peer_s": found["peer_s"],
        "ours_rss_mb": round(medians["ours"]["peak"]),
        "file_mb": round(model.stat().st_size / 1e6),
        "first_run_over_steady": round(runs["first"] / runs["steady"], 2),
    }


def child(way: str, model: Path) -> None:
    print(json.dumps({"read": read, "ours": ours, "ort": ort, "peer": peer, "runs": runs}[way](model)))


def timed(imports: Callable[[], Callable[[], object]]) -> tuple[Numbers, object]:
    """Seconds of the imports and of what they return; MB at the end."""
    started = time.monotonic()
    load = imports()
    imported = time.monotonic()
    loaded = load()
    numbers = {"imports": imported - started, "load": time.monotonic() - imported, "loaded_at": time.time()}
    return {**numbers, "peak": peak()}, loaded


def read(model: Path) -> Numbers:
    def whole() -> None:
        buffer = bytearray(PIECE)
        with model.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass

    return timed(lambda: whole)[0]


def ours(model: Path) -> Numbers:
    return timed(our_load)[0]


def our_load() -> Callable[[], object]:
    import onnxruntime  # noqa: F401 - part of what is told as imports

    import shared.vision.embedder.arcface
    import shared.vision.swapper.inswapper  # noqa: F401
    from shared.models.derived import DerivedGraphs
    from shared.models.registry import ModelRegistry
    from shared.vision.learned import LearnedSwapper
    from shared.vision.runtime import Runtime

    catalog = pickle.loads(CATALOG.read_bytes())

    def load() -> ModelRegistry:
        registry = ModelRegistry(catalog, ModelCache(CACHE), Runtime(graphs=DerivedGraphs(CACHE)))
        registry.get("full", LearnedSwapper)
        return registry

    return load


def ort(model: Path) -> Numbers:
    def imports() -> Callable[[], object]:
        import onnxruntime

        return lambda: onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])

    return timed(imports)[0]


def peer(model: Path) -> Numbers:
    def imports() -> Callable[[], object]:
        import insightface.model_zoo  # noqa: F401

        from tests.standins.insight import insightface_swapper

        return lambda: insightface_swapper(model)

    return timed(imports)[0]


def runs(model: Path) -> Numbers:
    """The first run beside the next ones, then the second model."""
    numbers, registry = timed(our_load)
    from shared.models.registry import ModelRegistry
    from shared.vision.learned import LearnedSwapper

    assert isinstance(registry, ModelRegistry)
    swapper = registry.get("full", LearnedSwapper)
    spans = [span(swapper.warm) for _ in range(1 + STEADY)]
    steady = [statistics.median(values) for values in zip(*spans[1:], strict=True)]
    ready = peak()
    second, _ = span(lambda: registry.get("second", LearnedSwapper))
    more = {"first": spans[0][0], "first_cpu": spans[0][1], "steady": steady[0], "steady_cpu": steady[1]}
    return {**numbers, **more, "peak_ready": ready, "second": second, "second_mb": peak() - ready}


def span(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.monotonic(), time.process_time()
    work()
    return time.monotonic() - wall, time.process_time() - cpu


def peak() -> float:
    """MB of this process at most so far."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(sys.argv[1], Path(sys.argv[2]))
    else:
        main()

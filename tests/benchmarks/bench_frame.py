"""CPU time of all but the network in one learned-swapper frame, and what a batch of tiles costs beside single runs.

    python -m tests.benchmarks.bench_frame

One thread, process time, the least of several runs. A 1080p frame with one face goes through the product's own
swapper (points, alignment, crop, normalisation, tiles, denormalisation, masks, paste in place; colour match off) with
a network that gives its input back and costs nothing, at its own 256 px and boosted to 1024. "Masked" adds an occlusion
mask, its network left out too. Decoding and encoding are not part of it.
The batch runs on a stand-in network of inswapper's interface: 16 tiles in the batches that the runtime makes of them,
and one by one with the outputs put together, in turns.
The last line is JSON: `cpu_ms` is the dearest of the face sizes up to 400 px, `batch_over_single` the median of the
batches' time in parts of the single runs'.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # run by path
    sys.path.insert(0, str(ROOT))

import cv2  # noqa: E402
import numpy as np  # noqa: E402

from shared.imaging.masks import feather  # noqa: E402
from shared.vision.learned import SourceRow  # noqa: E402
from shared.vision.protocols import Floats, Image, ModelAssets, SwapOptions, Target  # noqa: E402
from shared.vision.runtime import Runtime  # noqa: E402
from shared.vision.swapper.embedding import EmbeddingSwapper  # noqa: E402
from tests.benchmarks.bench_swap import FACES, FRAMES, Face, place, samples  # noqa: E402
from tests.benchmarks.timing import cpu_ms  # noqa: E402
from tests.standins import swappers  # noqa: E402

RUNS, BATCH_RUNS, TILES = 15, 21, 16
GOALS = {"plain": 12.0, "boost1024": 40.0}
"""CPU milliseconds."""
CASES = {"plain": SwapOptions(), "boost1024": SwapOptions(boost=1024)}
UP_TO = 400
"""Pixels; a larger face than that fills a 1080p frame, and what it costs stands in the table."""


class Mirror:
    """A runtime, session and batch runner whose network gives its input back."""

    outputs = ("output",)

    def session(self, path: Path, *, threads: int | None = None) -> Mirror:
        return self

    def batches(self, session: Mirror) -> Mirror:
        return self

    def run(self, feeds: Mapping[str, Floats], outputs: Sequence[str] | None = None) -> list[Floats]:
        return [feeds["target"]]


class Occluder:
    """A masker without its network: crops to 256 px, an answer of half the face, feather."""

    sees_swapped = False
    answer = np.repeat(np.linspace(0, 1, 256, dtype=np.float32)[:, None], 256, axis=1)

    def mask(self, crops: Image) -> Floats:
        for crop in crops:
            cv2.resize(crop, (256, 256), interpolation=cv2.INTER_AREA).astype(np.float32)
        return np.stack([feather(self.answer, crops.shape[1]) for _ in crops])


def main() -> None:
    cv2.setNumThreads(1)
    _, target = samples()
    swapper = mirror_swapper()
    swap_ms(swapper, place(target, FRAMES["1080p"], FACES[-1]), CASES["boost1024"], [], 1)  # the allocator settles
    print(f"{'face px':>8}" + "".join(f"{name + ' ms':>14}{'masked':>8}" for name in CASES))
    worst = dict.fromkeys(CASES, 0.0)
    for width in FACES:
        face = place(target, FRAMES["1080p"], width)
        row = []
        for name, options in CASES.items():
            plain, masked = (swap_ms(swapper, face, options, maskers, RUNS) for maskers in ([], [Occluder()]))
            row.append(f"{plain:14.2f}{masked:8.2f}")
            if width <= UP_TO:
                worst[name] = max(worst[name], plain)
        print(f"{width:8d}" + "".join(row), flush=True)
    for name, goal in GOALS.items():
        print(f"{name}: {worst[name]:.2f} ms of {goal:.0f} allowed")
    ratio = batch_over_single()
    print(f"a batch of {TILES} tiles takes {ratio:.3f} of {TILES} single runs")
    report = {name: round(ms, 2) for name, ms in worst.items()}
    print(json.dumps({"cpu_ms": report, "batch_over_single": round(ratio, 3)}))


def mirror_swapper() -> EmbeddingSwapper:
    family = swappers.FAMILIES["hyperswap"]
    assets = ModelAssets("hyperswap", {"model": Path()}, family.parameters, {"embedder": Occluder()})
    return EmbeddingSwapper(assets, Mirror())


def swap_ms(
    swapper: EmbeddingSwapper, face: Face, options: SwapOptions, maskers: Sequence[Occluder], runs: int
) -> float:
    frame = face.image.copy()
    targets = [Target(face.mesh, SourceRow(np.zeros(512, np.float32)))]
    return cpu_ms(lambda: swapper.swap(frame, targets, options, maskers), runs)


def batch_over_single() -> float:
    chance = np.random.default_rng(0)
    target = chance.random((TILES, 3, 128, 128), np.float32)
    source = np.repeat(chance.normal(size=(1, 512)).astype(np.float32), TILES, axis=0)
    with tempfile.TemporaryDirectory() as folder:
        files = swappers.build("inswapper", Path(folder), swappers.Build(width=64, blocks=4))
        runtime = Runtime(threads=1)
        session = runtime.session(files["model"])
        batches = runtime.batches(session)

    def together() -> None:
        batches.run({"target": target, "source": source})

    def one_by_one() -> None:
        rows = [{"target": target[k : k + 1], "source": source[k : k + 1]} for k in range(TILES)]
        np.concatenate([session.run(row)[0] for row in rows])

    return statistics.median(cpu_ms(together, 1) / cpu_ms(one_by_one, 1) for _ in range(BATCH_RUNS))


if __name__ == "__main__":
    main()

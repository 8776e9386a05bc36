"""What is checked on a GPU, written so that it runs on a CPU too: parity, throughput and what a batch gains.

Needs no model and no picture but what it makes: stand-ins, noise and the canonical face.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import cv2
import numpy as np

from shared.vision.canonical import canonical
from shared.vision.learned import LearnedSwapper, SourceRow
from shared.vision.protocols import Floats, Image, SwapOptions, Target
from shared.vision.runtime import Runtime
from tests.standins.insight import InsightFace, insightface_swapper
from tests.standins.swappers import Build
from tests.standins.world import FixedEmbedder, StandIns

RAW = np.random.default_rng(5).standard_normal(512).astype(np.float32)


@dataclass(frozen=True)
class Load:
    """How much work: frames of `faces` faces each, on a network of this build."""

    how: Build
    frames: int
    faces: int
    threads: int
    """Workers that share the session, as a Service's concurrency does: one's pixels are moved while another's run."""


def picture(height: int, width: int) -> Image:
    small = np.random.default_rng(3).integers(0, 256, (height // 12, width // 12, 3), np.uint8)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC), np.uint8)


def mesh(x: float, y: float, size: float = 150) -> Floats:
    mean = canonical().mean
    return (mean * size / np.ptp(mean[:, 0]) + [x, y, 0]).astype(np.float32)


def swapper_on(
    runtime: Runtime, standins: StandIns, how: Build, **parameters: bool
) -> tuple[LearnedSwapper, SourceRow]:
    swapper = standins.swapper("inswapper", runtime, how, embedder=FixedEmbedder({0: RAW}), **parameters)
    row = RAW / np.linalg.norm(RAW) @ np.load(standins.files("inswapper", how)["emap"])
    return swapper, SourceRow((row / np.linalg.norm(row)).astype(np.float32))


@dataclass(frozen=True)
class Parity:
    """Levels between ours on a device and insightface's own on the CPU."""

    crop: int
    frame: int
    beyond: float
    """Share of the frame's changed values that differ by more than 1."""


def parity(runtime: Runtime, standins: StandIns, how: Build) -> Parity:
    swapper, row = swapper_on(runtime, standins, how, exact=True)
    theirs = insightface_swapper(standins.files("inswapper", how)["model"])
    frame, found = picture(720, 1280), mesh(500, 350)
    target, source = Target(found, row), InsightFace.who(RAW)
    crop, _ = theirs.get(frame, InsightFace.at(found), source, paste_back=False)
    expected = theirs.get(frame, InsightFace.at(found), source, paste_back=True)
    ours = swapper.swapped(frame, [target], SwapOptions()).pictures[0]
    result = frame.copy()
    swapper.swap(result, [target], SwapOptions())
    difference = np.abs(result.astype(int) - expected)
    changed = max(1, int((expected != frame).sum()))
    return Parity(int(np.abs(ours.astype(int) - crop).max()), int(difference.max()), (difference > 1).sum() / changed)


def throughput(runtime: Runtime, standins: StandIns, load: Load) -> float:
    """Faces per second of the swap stage's loop over the bare session's; both after a warm-up, in as many threads."""
    swapper, row = swapper_on(runtime, standins, load.how)
    frame = picture(1080, 1920)
    targets = [Target(mesh(300 + 400 * (i % 4), 300 + 400 * (i // 4)), row) for i in range(load.faces)]
    session = runtime.session(standins.files("inswapper", load.how)["model"])
    feeds = {
        "target": np.random.default_rng(0).random((load.faces, 3, 128, 128), np.float32),
        "source": np.repeat(row.values[None], load.faces, axis=0),
    }
    frames = [frame.copy() for _ in range(load.threads)]

    def swap(number: int) -> None:
        swapper.swap(frames[number % load.threads], targets, SwapOptions())

    loop = seconds(swap, load)
    bare = seconds(lambda _: session.run(feeds), load)
    return bare / loop


def batch_gain(runtime: Runtime, standins: StandIns, how: Build, rows: int = 16, repeats: int = 5) -> float:
    """Time of `rows` single runs over that of one run of all, the best of some."""
    _, row = swapper_on(runtime, standins, how)
    session = runtime.session(standins.files("inswapper", how)["model"])
    target = np.random.default_rng(0).random((rows, 3, 128, 128), np.float32)
    source = np.repeat(row.values[None], rows, axis=0)

    def singly() -> None:
        for i in range(rows):
            session.run({"target": target[i : i + 1], "source": source[i : i + 1]})

    def at_once() -> None:
        session.run({"target": target, "source": source})

    return best(singly, repeats) / best(at_once, repeats)


def seconds(work: Callable[[int], object], load: Load) -> float:
    with ThreadPoolExecutor(load.threads) as threads:
        list(threads.map(work, range(2 * load.threads)))
        started = time.perf_counter()
        list(threads.map(work, range(load.frames)))
        return time.perf_counter() - started


def best(work: Callable[[], None], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)

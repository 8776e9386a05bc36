"""Ten seconds of 720p with two faces through the local platform, beside a straight loop over its frames.

    python -m tests.benchmarks.bench_video

Both ways use the same detector and stand-in for inswapper, and the same encoder at the same setting:

- ours: the whole product under `infra.local`, from the upload to the result: split, detect, swap, assemble, moderation
  and publish as functions of their own, two segments at a time (as many as this machine has processors). One short
  video went before, so that no function has to wake.
- naive: one process that decodes a frame, detects its faces, lets insightface's own INSwapper swap and paste each, and
  encodes it. Loading is not counted.

They take turns. Memory is the largest sum of all functions' proportional set sizes while a video is under way, sampled
every second in runs of their own, since looking costs; the video of a minute is the short one six times. The jitter is
that of a face pasted on a still that moves along a known path, followed by the tracker and found anew in each frame.
The last line is JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psutil

from shared.models import catalog
from shared.models.cache import ModelCache
from tests.local.machine import ROOT, Machine
from tests.standins import embedders, swappers
from tests.standins.tables import table

ROUNDS = 3
SECONDS, LONG = 10, 60
RATE = 25
WIDTH, HEIGHT = 1280, 720
QUALITY = 92
SWAPPER, EMBEDDER = "standin_inswapper", "standin_arcface"
GOAL = 3.0
CACHE = ROOT / ".wakeswap/models"


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-video-") as name:
        folder = Path(name)
        tables, files = installed(folder)
        clips = {seconds: film(folder / f"{seconds}.mp4", seconds) for seconds in (1, SECONDS, LONG)}
        with platform(folder, tables) as machine:
            run(machine, clips[1], "warm", RATE)
            ours, naive = [], []
            for number in range(ROUNDS):
                ours.append(run(machine, clips[SECONDS], f"short{number}", SECONDS * RATE))
                naive.append(straight(clips[SECONDS], files))
            short = run(machine, clips[SECONDS], "watched", SECONDS * RATE, watch=True)
            long = run(machine, clips[LONG], "long", LONG * RATE, watch=True)
    tracked, untracked = trembling()
    fps = {"ours": SECONDS * RATE / statistics.median(one[0] for one in ours)}
    fps["naive"] = statistics.median(one["fps"] for one in naive)
    rss = short[1]
    print(f"{'way':<8}{'frames/s':>10}{'memory MB':>11}")
    print(f"{'ours':<8}{fps['ours']:10.1f}{rss:11.0f}")
    print(f"{'naive':<8}{fps['naive']:10.1f}{statistics.median(one['rss_mb'] for one in naive):11.0f}")
    print(f"{fps['ours'] / fps['naive']:.2f} times the frames (goal {GOAL:.0f})")
    print(f"a minute's video: {long[1] / rss:.2f} times the memory, {LONG * RATE / long[0]:.1f} frames/s")
    print(f"jitter {tracked:.3f} px, without tracking {untracked:.3f} px; load average {os.getloadavg()[0]:.1f}")
    report = {"ours_fps": fps["ours"], "naive_fps": fps["naive"], "rss_10s_mb": rss, "rss_60s_mb": long[1]}
    report |= {"jitter_px": tracked, "jitter_untracked_px": untracked}
    print(json.dumps({key: round(value, 3) for key, value in report.items()}))


def sample(name: str) -> Path:
    """A picture out of an installed package."""
    cache = ModelCache(CACHE)
    for group in catalog.default().samples.values():
        if name in {file.part for file in group.files}:
            return cache.ensure(group)[name]
    raise LookupError(name)


def installed(folder: Path) -> tuple[Path, dict[str, Path]]:
    """A catalogue with both stand-ins, and the swapper's files."""
    files = swappers.build("inswapper", folder / "swapper")
    recogniser = embedders.build(folder / "embedder")
    family = swappers.FAMILIES["inswapper"]
    tables = folder / "catalogue"
    tables.mkdir()
    adapter = "shared.vision.embedder.arcface:ArcFace"
    (tables / "standins.toml").write_text(
        table(SWAPPER, "swapper", family.adapter, files, family.parameters, uses={"embedder": EMBEDDER})
        + table(EMBEDDER, "embedder", adapter, recogniser, embedders.PARAMETERS)
    )
    return tables, files


def film(path: Path, seconds: int) -> Path:
    """Two people, the camera never still; the motion begins anew every ten seconds."""
    import av

    still = cv2.imread(str(sample("t1")))
    assert still is not None
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.options = {"preset": "veryfast", "crf": "18", "g": str(RATE)}
        for number in range(seconds * RATE):
            frame = av.VideoFrame.from_ndarray(seen(still, number % (SECONDS * RATE)), format="bgr24")
            frame.pts = number
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    return path


def seen(still: np.ndarray, number: int) -> np.ndarray:
    """uint8 [HEIGHT, WIDTH, 3]"""
    angle = 2 * np.pi * number / (SECONDS * RATE)
    scale, turn = 2.6 + 0.1 * np.sin(angle), 0.02 * np.sin(2 * angle)
    x, y = 658 + 12 * np.sin(angle), 395 + 12 * np.cos(angle)
    matrix = np.array([[scale, -turn, WIDTH / 2 - scale * x], [turn, scale, HEIGHT / 2 - scale * y]])
    return cv2.warpAffine(still, matrix, (WIDTH, HEIGHT), flags=cv2.INTER_CUBIC)


@contextmanager
def platform(folder: Path, tables: Path) -> Iterator[Machine]:
    def change(docs: list[dict[str, Any]]) -> None:
        for doc in docs:
            if doc["kind"] == "ConfigMap" and doc["metadata"]["name"] == "wakeswap":
                doc["data"]["WAKESWAP_CATALOGUE"] = str(tables)

    shutil.copytree(CACHE, folder / "models", copy_function=os.link)
    tenants = {"demo": {"policy": {"max_segments": 2}}}
    machine = Machine(folder / "machine", change, tenants=tenants, models=folder / "models", idle=600)
    machine.up()
    try:
        yield machine
    finally:
        machine.down()


def run(machine: Machine, clip: Path, name: str, frames: int, *, watch: bool = False) -> tuple[float, float]:
    """Seconds from the upload to the result, and with `watch` the most memory in MB."""
    known, most, looked = set(machine.outcomes()), 0.0, 0.0
    started = time.monotonic()
    send(machine, clip, name)
    while not (new := set(machine.outcomes()) - known):
        assert time.monotonic() - started < 600, name
        time.sleep(0.1)
        if watch and time.monotonic() - looked > 1:
            looked = time.monotonic()
            most = max(most, sum(map(held, machine.processes())))
    seconds = time.monotonic() - started
    end = machine.outcomes()[new.pop()]
    assert end["type"].startswith("dev.wakeswap.publish.completed"), end
    assert end["data"]["frames_swapped"] == end["data"]["frames"] == frames, end["data"]
    print(f"{name}: {end['data']['frames']} frames, {seconds:.1f} s, {most:.0f} MB", flush=True)
    return seconds, most


def send(machine: Machine, clip: Path, name: str) -> None:
    place = machine.inbox / name
    place.mkdir()
    shutil.copy(sample("astronaut"), place / "face.png")  # not source and target: these would be a job by themselves
    shutil.copy(clip, place / "clip.mp4")
    options = {"swapper": SWAPPER, "quality": QUALITY}
    (place / ".job").write_text(json.dumps({"source": "face.png", "target": "clip.mp4", "options": options}))
    (place / ".job").rename(place / "film.job.json")


def held(process: psutil.Process) -> float:
    """MB of its own, with its part of what it shares."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000


def straight(clip: Path, files: dict[str, Path]) -> dict[str, float]:
    """The loop in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.straight_loop", clip, files["model"], sample("astronaut")]
    ran = subprocess.run(list(map(str, command)), cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    print(f"naive: {found['frames']:.0f} frames, {found['fps']:.1f} frames/s, {found['rss_mb']:.0f} MB", flush=True)
    return found


def trembling() -> tuple[float, float]:
    """RMS in pixels of a pasted face, tracked and found anew in each frame."""
    from shared.models import build
    from shared.settings import ModelSettings
    from shared.vision.finder import find_faces
    from shared.vision.protocols import Detector, Landmarker, SourceFace, Swapper
    from tests.unit.vision.tracking import jitter

    models = build.registry(ModelSettings(cache=CACHE))
    detector, landmarker = models.get("detector", Detector), models.get("landmarker", Landmarker)
    still, picture = cv2.imread(str(sample("astronaut"))), cv2.imread(str(sample("t1")))
    source = SourceFace(picture, find_faces(picture, detector, landmarker)[0].mesh)
    tools = (detector, landmarker, models.get("mesh", Swapper))
    tracked, untracked = jitter.both(still, source, tools, grain=2.0)
    return tracked.pasted, untracked.pasted


if __name__ == "__main__":
    main()

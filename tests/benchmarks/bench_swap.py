"""CPU time of the embedded swap beside the usual way of swapping faces, over frame sizes and face sizes.

    python -m tests.benchmarks.bench_swap

One thread, process time, the least of several runs (what is above it comes from the machine's other processes), the
source prepared once. "Ours" is one call of MeshSwapper.swap
(analysis, relight, map, blend). "Naive" is what tutorials do: one warpAffine per triangle onto a canvas of the frame's
size, hull mask, LAB mean and deviation, feathered blend over the whole frame. Where the study ../shared/prototype
and scipy are at hand its cost is measured in the same run. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # run by path
    sys.path.insert(0, str(ROOT))

import cv2  # noqa: E402
import numpy as np  # noqa: E402

from shared.models import catalog  # noqa: E402
from shared.models.cache import ModelCache  # noqa: E402
from shared.vision.canonical import OVAL, canonical  # noqa: E402
from shared.vision.detector.centerface import CenterFace  # noqa: E402
from shared.vision.finder import find_faces  # noqa: E402
from shared.vision.landmarker.face_mesh import FaceMesh  # noqa: E402
from shared.vision.protocols import Floats, Image, ModelAssets, SourceFace, SwapOptions, Target  # noqa: E402
from shared.vision.runtime import Runtime  # noqa: E402
from shared.vision.swapper.mesh import MeshSwapper  # noqa: E402

FRAMES = {"720p": (1280, 720), "1080p": (1920, 1080), "4K": (3840, 2160)}
FACES = (100, 200, 400, 800)
PROTOTYPE = ROOT.parent / "shared" / "prototype"
Swap = Callable[[Image, Floats], None]
Table = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Face:
    image: Image
    mesh: Floats


def main() -> None:
    cv2.setNumThreads(1)
    source, target = samples()
    ours, naive, prototype = mesh_way(source), naive_way(source), prototype_way(source)
    ways = {"ours": (ours, 15), "naive": (naive, 3)} | ({"prototype": (prototype, 15)} if prototype else {})
    if prototype is None:
        print(f"prototype: not compared, needs {PROTOTYPE} and scipy")
    print(f"{'frame':>6} {'face px':>8}" + "".join(f"{name + ' ms':>14}" for name in ways) + f"{'gain':>9}")
    for (
        swap,
        _,
    ) in ways.values():  # the allocator settles on the largest picture: the first row is no colder than the last
        cpu_ms(swap, place(target, FRAMES["4K"], FACES[-1]), 1)
    tables: dict[str, Table] = {name: {frame: {} for frame in FRAMES} for name in ways}
    for frame, size in FRAMES.items():
        for width in FACES:
            picture = place(target, size, width)
            row = {name: round(cpu_ms(swap, picture, runs), 2) for name, (swap, runs) in ways.items()}
            for name, ms in row.items():
                tables[name][frame][str(width)] = ms
            numbers = "".join(f"{ms:14.1f}" for ms in row.values())
            print(f"{frame:>6} {width:8d}{numbers}{row['naive'] / row['ours']:8.0f}x", flush=True)
    report = {"cpu_ms": tables["ours"], "naive_cpu_ms": tables["naive"]}
    if prototype:
        report["prototype_cpu_ms"] = tables["prototype"]
    print(json.dumps(report))


def cpu_ms(swap: Swap, face: Face, runs: int) -> float:
    """Least CPU time of swapping one face in place, in milliseconds; copying the frame is not counted."""
    times = []
    for _ in range(runs + 1):
        frame = face.image.copy()
        start = time.process_time()
        swap(frame, face.mesh)
        times.append(time.process_time() - start)
    return min(times[1:]) * 1000


def samples() -> tuple[Face, Face]:
    """Source: the rightmost face of t1. Target: the astronaut."""
    cache, models = ModelCache(ROOT / ".wakeswap" / "models"), catalog.default()
    runtime = Runtime(threads=1)

    def assets(name: str) -> ModelAssets:
        return ModelAssets(name, cache.ensure(models.model(name)), {})

    detector, landmarker = CenterFace(assets("centerface"), runtime), FaceMesh(assets("face_mesh"), runtime)
    pictures = {part: path for group in models.samples.values() for part, path in cache.ensure(group).items()}

    def face(name: str) -> Face:
        image = cv2.imread(str(pictures[name]), cv2.IMREAD_COLOR)
        assert image is not None
        return Face(image, find_faces(image, detector, landmarker)[-1].mesh)

    return face("t1"), face("astronaut")


def place(face: Face, size: tuple[int, int], width: int) -> Face:
    """The face in the middle of a frame, its mesh `width` pixels wide; the frame cuts what does not fit."""
    low, high = face.mesh[:, :2].min(0), face.mesh[:, :2].max(0)
    scale = width / float(high[0] - low[0])
    move = np.array(size) / 2 - (low + high) / 2 * scale
    matrix = np.array([[scale, 0, move[0]], [0, scale, move[1]]])
    frame = cv2.warpAffine(face.image, matrix, size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
    mesh = face.mesh * np.float32(scale) + np.float32([*move, 0])
    return Face(frame, mesh.astype(np.float32))


def mesh_way(source: Face) -> Swap:
    swapper = MeshSwapper(ModelAssets("mesh", {}, {}), Runtime(threads=1))
    identity = swapper.prepare([SourceFace(source.image, source.mesh)])
    return lambda frame, mesh: swapper.swap(frame, [Target(mesh, identity)], SwapOptions())


def naive_way(source: Face) -> Swap:
    def swap(frame: Image, mesh: Floats) -> None:
        canvas = warp_triangles(source, frame, mesh)
        mask = np.zeros(frame.shape[:2], np.uint8)
        cv2.fillConvexPoly(mask, cv2.convexHull(mesh[OVAL, :2].astype(np.int32)), 255)
        canvas = match_lab(canvas, frame, mask)
        soft = cv2.GaussianBlur(cv2.erode(mask, np.ones((9, 9), np.uint8)), (21, 21), 0)
        alpha = soft.astype(np.float32)[..., None] / 255
        frame[:] = (canvas * alpha + frame * (1 - alpha)).astype(np.uint8)

    return swap


def warp_triangles(source: Face, frame: Image, mesh: Floats) -> Image:
    canvas = np.zeros_like(frame)
    height, width = frame.shape[:2]
    for triangle in canonical().triangles:
        a, b = source.mesh[triangle, :2], mesh[triangle, :2]
        xa, ya, wa, ha = cv2.boundingRect(a)
        xb, yb, wb, hb = cv2.boundingRect(b)
        if xb < 0 or yb < 0 or xb + wb > width or yb + hb > height:
            continue
        corner_a, corner_b = np.float32([xa, ya]), np.float32([xb, yb])
        matrix = cv2.getAffineTransform(a - corner_a, b - corner_b)
        patch = source.image[ya : ya + ha, xa : xa + wa]
        warped = cv2.warpAffine(patch, matrix, (wb, hb), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101)
        inside = np.zeros((hb, wb, 3), np.uint8)
        cv2.fillConvexPoly(inside, (b - corner_b).astype(np.int32), (1, 1, 1), cv2.LINE_AA)
        area = canvas[yb : yb + hb, xb : xb + wb]
        area[:] = np.where(inside > 0, warped, area)
    return canvas


def match_lab(canvas: Image, frame: Image, mask: Image) -> Image:
    """Give the canvas the frame's mean and deviation of each LAB channel under the mask."""
    ours, theirs = (cv2.cvtColor(x, cv2.COLOR_BGR2LAB).astype(np.float32) for x in (canvas, frame))
    inside = mask > 0
    for channel in range(3):
        have, want = ours[..., channel][inside], theirs[..., channel][inside]
        ours[..., channel] = (ours[..., channel] - have.mean()) * (want.std() / (have.std() + 1e-6)) + want.mean()
    return cv2.cvtColor(np.clip(ours, 0, 255).astype(np.uint8), cv2.COLOR_LAB2BGR)


def prototype_way(source: Face) -> Swap | None:
    """The study's own swap, run as it is from a folder laid out as it expects; None where it cannot run."""
    if not (PROTOTYPE / "swap.py").is_file() or util.find_spec("scipy") is None:
        return None
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "models").mkdir()
        shutil.copy(PROTOTYPE / "canon.npz", Path(folder) / "models")
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(PROTOTYPE))
        os.chdir(folder)
        try:
            study = import_module("swap")
            identity = study.prepare_source(source.image, source.mesh)
            study.swap(source.image.copy(), source.mesh, identity)
        finally:
            os.chdir(here)
            sys.path.remove(str(PROTOTYPE))
    return lambda frame, mesh: study.swap(frame, mesh, identity)


if __name__ == "__main__":
    main()

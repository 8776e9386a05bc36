"""CPU time of the paste-back beside insightface's own, over frame sizes and face sizes.

    python -m tests.benchmarks.bench_paste

One thread, process time, the least of several runs taken in turns (what is above it comes from the machine's other
processes). The peer is INSwapper.get of insightface with paste_back less the same call without, on a stand-in network
of inswapper's interface. "Ours" lays the same crop with `paste`, the box mask from its cache; "exact" is `paste_exact`,
whose frame is compared with the peer's: `max_diff`, in levels. The last line is JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:  # run by path
    sys.path.insert(0, str(ROOT))

import cv2  # noqa: E402
import numpy as np  # noqa: E402
from insightface.model_zoo import get_model  # noqa: E402
from insightface.model_zoo.inswapper import INSwapper  # noqa: E402

from shared.imaging.masks import box_mask  # noqa: E402
from shared.imaging.paste import paste  # noqa: E402
from shared.imaging.paste_exact import paste_exact  # noqa: E402
from shared.vision.geometry import five_points  # noqa: E402
from tests.benchmarks.bench_swap import FACES, FRAMES, Face, place, samples  # noqa: E402
from tests.benchmarks.timing import cpu_ms  # noqa: E402
from tests.standins import swappers  # noqa: E402

RUNS, PEER_RUNS = 15, 5
GOAL_MS, GOAL_SPREAD = 8.0, 1.2
"""At 4K with a 200 px face, and how much dearer one frame size may be than another."""
Table = dict[str, dict[str, float]]


class Person(dict[str, object]):
    """A face as insightface hands it round."""

    __getattr__ = dict.__getitem__


def main() -> None:
    cv2.setNumThreads(1)
    warnings.simplefilter("ignore", FutureWarning)  # insightface's call of scikit-image
    peer = insightface_swapper()
    _, target = samples()
    measure(peer, place(target, FRAMES["4K"], FACES[-1]), 1, 1)  # the allocator settles on the largest picture
    tables: dict[str, Table] = {name: {} for name in ("cpu_ms", "exact_cpu_ms", "peer_cpu_ms", "max_diff")}
    print(f"{'frame':>6} {'face px':>8}{'ours ms':>10}{'exact ms':>10}{'peer ms':>10}{'gain':>8}{'max diff':>10}")
    for frame, size in FRAMES.items():
        for width in FACES:
            row = measure(peer, place(target, size, width), RUNS, PEER_RUNS)
            for name, value in row.items():
                tables[name].setdefault(frame, {})[str(width)] = round(value, 2)
            ours, exact, theirs, difference = row.values()
            print(
                f"{frame:>6} {width:8d}{ours:10.2f}{exact:10.2f}{theirs:10.1f}{theirs / ours:7.0f}x{difference:10.0f}",
                flush=True,
            )
    verdict(tables["cpu_ms"])
    print(json.dumps(tables))


def verdict(ours: Table) -> None:
    spread = max(ours["4K"]["200"] / ours["720p"]["200"], ours["720p"]["200"] / ours["4K"]["200"])
    print(f"4K with a 200 px face: {ours['4K']['200']:.2f} ms of {GOAL_MS:.0f} allowed")
    print(f"4K against 720p with a 200 px face: {spread:.2f}-fold of {GOAL_SPREAD} allowed")


def insightface_swapper() -> INSwapper:
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        model = swappers.build("inswapper", Path(folder), swappers.Build(batch=1))["model"]
        return get_model(str(model), providers=["CPUExecutionProvider"])


def measure(peer: INSwapper, face: Face, runs: int, peer_runs: int) -> dict[str, float]:
    frame = face.image.copy()
    person = Person(kps=five_points(face.mesh), normed_embedding=np.full(512, 512**-0.5, np.float32))
    reversed_crop, matrix = peer.get(frame, person, person, paste_back=False)
    crop, mask = np.ascontiguousarray(reversed_crop), box_mask(reversed_crop.shape[0])
    ours = cpu_ms(lambda: paste(frame, crop, mask, matrix), runs)
    exact = cpu_ms(lambda: paste_exact(frame, crop, matrix), runs)
    with_paste = cpu_ms(lambda: peer.get(frame, person, person), peer_runs)
    without = cpu_ms(lambda: peer.get(frame, person, person, paste_back=False), peer_runs)
    return {
        "cpu_ms": ours,
        "exact_cpu_ms": exact,
        "peer_cpu_ms": with_paste - without,
        "max_diff": difference(face, crop, matrix, peer, person),
    }


def difference(face: Face, crop: np.ndarray, matrix: np.ndarray, peer: INSwapper, person: Person) -> float:
    """Largest difference of the two frames, in levels."""
    ours = face.image.copy()
    paste_exact(ours, crop, matrix)
    return float(np.abs(ours.astype(np.int16) - peer.get(face.image, person, person)).max())


if __name__ == "__main__":
    main()

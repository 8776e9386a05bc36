"""Two people who cross, of whom one goes and comes back on the other side, in a video of four parts: each keeps the
source that the job's mapping gives them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from shared.context import Models
from shared.events.choices import Pairing
from shared.jobs.film import open_plan
from shared.storage import keys
from shared.vision.runtime import Runtime
from shared.vision.tracking import record
from tests.functions.chain import JOB, Parts
from tests.functions.film import Film
from tests.standins.world import StandIns

WIDTH, HEIGHT, FRAMES = 512, 224, 100
HEADS = {"anna": ("astronaut", (166, 40, 286, 190)), "ben": ("t1", (1118, 250, 1244, 408))}
"""Sample and box: to the stand-in for a recogniser two people as different as they should be."""
SIDE = (104, 132)
FACE = Path(__file__).parents[1] / "data/face/one_face.jpg"


def where(person: str, number: int) -> tuple[float, float]:
    """The middle of a head. They cross in the second part; Ben leaves on the left and comes back on the right."""
    across = float(np.interp(number, (8, 62), (0, 1)))
    if person == "anna":
        return float(np.interp(number, (0, 8, 62, 80), (110, 110, 400, 260))), 96 + 8 * across
    if number < 78:
        return float(np.interp(number, (0, 8, 56, 72), (402, 402, 112, -90))), 124 - 8 * across
    return float(np.interp(number, (80, 92), (600, 420))), 116


def film_of(path: Path, sample: Callable[[str], Path]) -> Path:
    """Anna passes in front of Ben; a key frame each second."""
    heads = {person: cut_out(sample(name), box) for person, (name, box) in HEADS.items()}
    ys, xs = np.mgrid[:HEIGHT, :WIDTH]
    wall = np.repeat((120 + 20 * np.sin(xs / 23) * np.cos(ys / 17))[..., None], 3, 2).astype(np.float32)
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.options = {"preset": "veryfast", "x264-params": "keyint=25:scenecut=0"}
        for number in range(FRAMES):
            frame = wall.copy()
            for person in ("ben", "anna"):
                paste(frame, *heads[person], where(person, number))
            made = av.VideoFrame.from_ndarray(frame.astype(np.uint8), format="bgr24").reformat(format="yuv420p")
            made.pts = number
            out.mux(stream.encode(made))
        out.mux(stream.encode())
    return path


def cut_out(path: Path, box: tuple[int, int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """A head and how much of it shows, an ellipse."""
    image = cv2.imread(str(path))
    assert image is not None
    x0, y0, x1, y1 = box
    head = cv2.resize(image[y0:y1, x0:x1], SIDE, interpolation=cv2.INTER_AREA).astype(np.float32)
    shape = np.zeros((SIDE[1], SIDE[0]), np.float32)
    cv2.ellipse(shape, (SIDE[0] // 2, SIDE[1] // 2), (SIDE[0] // 2 - 3, SIDE[1] // 2 - 3), 0, 0, 360, 1.0, -1)
    return head, cv2.GaussianBlur(shape, (5, 5), 0)[..., None]


def paste(frame: np.ndarray, head: np.ndarray, shape: np.ndarray, middle: tuple[float, float]) -> None:
    place = np.array([[1, 0, middle[0] - SIDE[0] / 2], [0, 1, middle[1] - SIDE[1] / 2]])
    moved, much = (cv2.warpAffine(one, place, (WIDTH, HEIGHT)) for one in (head, shape))
    frame[:] = frame + much[..., None] * (moved - frame)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory, sample: Callable[[str], Path]) -> Path:
    return film_of(tmp_path_factory.mktemp("people") / "people.mp4", sample)


def swapped(film: Film, target: Path) -> dict[int, list[tuple[float, float, int]]]:
    """For each frame the middles of the faces that are replaced, and by which source."""
    found: dict[int, list[tuple[float, float, int]]] = {}
    with av.open(str(target)) as held:
        times = sorted(packet.pts for packet in held.demux(video=0) if packet.size)
    for clip in film.clips:
        plan = open_plan(film.store.get(clip.plan.key)[0])
        part, shift = plan.parts[clip.index], plan.parts[0].start - plan.facts.start
        key = keys.job("demo", JOB, "detect", f"tracks.{clip.index}.npz")
        tracks = record.read(film.store.get(key)[0])
        for at in tracks.pts.tolist():
            if part.start <= at < part.end:
                boxes = [((place.box[:2] + place.box[2:]) / 2, place.source) for place in tracks.to_swap(at)]
                found[times.index(at - shift)] = [(float(x), float(y), source) for (x, y), source in boxes]
    return found


def alone(person: str, number: int) -> bool:
    """Whether a head is well inside and not behind the other."""
    x, _ = where(person, number)
    apart = abs(where("anna", number)[0] - where("ben", number)[0])
    return 60 < x < WIDTH - 60 and (person == "anna" or apart > SIDE[0])


def sources(person: str, number: int, faces: list[tuple[float, float, int]]) -> list[int]:
    """Of the faces nearer to the middle of this head than to that of the other."""
    (x, y), (other_x, other_y) = (where(one, number) for one in (person, "ben" if person == "anna" else "anna"))
    near = [(np.hypot(u - x, v - y), np.hypot(u - other_x, v - other_y), source) for u, v, source in faces]
    return [source for own, other, source in near if own < other and own < SIDE[0] / 2]


def test_who_crosses_or_comes_back_keeps_the_source_of_the_mapping(
    tmp_path: Path, registry: Models, astronaut: Path, target: Path
) -> None:
    mapping = (Pairing(source=1, target=0), Pairing(source=0, target=1))
    likeness = StandIns(tmp_path / "models").embedder(Runtime(threads=1))
    film = Film(tmp_path / "objects", Parts(registry, {"likeness": likeness}, {"embedder": "likeness"}))
    one = film.job(astronaut, target, mapping=mapping, unsuited_source="warn")
    other = film.chain.put("x/other.jpg", FACE.read_bytes(), "image/jpeg")
    result, _ = film.run(replace(one, source=(*one.source, other)))
    assert (len(film.clips), result.frames) == (4, FRAMES)
    found = swapped(film, target)
    for person, wanted in (("anna", [1]), ("ben", [0])):
        told = [(n, sources(person, n, found[n])) for n in range(FRAMES) if alone(person, n)]
        assert [(n, got) for n, got in told if not set(got) <= set(wanted)] == [], f"{person} has another's face"
        missed = [n for n, got in told if got != wanted]
        assert len(missed) <= 3, f"{person} is missed in {missed}"

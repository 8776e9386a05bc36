"""A world of square people, and fakes that see it: who is where is known, in every frame.

Each person has a colour; who is drawn later stands in front. A face is seen where half of its square is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from shared.events.choices import Options
from shared.imaging.canvas import Still
from shared.imaging.look import Look
from shared.vision.canonical import canonical
from shared.vision.geometry import five_points
from shared.vision.protocols import Detection, Floats, Image, Landmarks
from shared.vision.tracking.casting import Known, choose
from shared.vision.tracking.finishing import Cast, finish
from shared.vision.tracking.looks import Nearby
from shared.vision.tracking.tracker import Tracker
from shared.vision.tracking.tracks import Tracks
from shared.vision.tracking.trail import Models, Pace

WIDTH, HEIGHT = 480, 270
COLOURS = ((40, 40, 220), (40, 220, 40), (220, 40, 40), (220, 220, 40))
"""BGR."""
Where = Mapping[int, tuple[float, float, float]]
"""Person to x, y of the middle and the side, in the order in which they are drawn."""
Scene = Callable[[int], Where]


def mesh_at(x: float, y: float, side: float) -> Floats:
    """A well-fitting one, as large as the square."""
    mean = canonical().mean
    scale = side / float(np.ptp(mean[:, :2], axis=0).max())
    low, high = mean[:, :2].min(0), mean[:, :2].max(0)
    middle = np.array([*(low + high) / 2, 0], np.float32)
    return ((mean - middle) * np.float32(scale) + np.array([x, y, 0])).astype(np.float32)


def draw(where: Where) -> Image:
    """The texture of a face moves with it, to the pixel."""
    ys, xs = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    frame = np.full((HEIGHT, WIDTH, 3), 128, np.float32)
    for person, (x, y, side) in where.items():
        u, v = (xs - x) / side, (ys - y) / side
        inside = np.maximum(abs(u), abs(v)) <= 0.5
        wave = 18 * np.sin(17 * u + 3 * np.sin(9 * v)) * np.cos(13 * v)
        frame[inside] = (np.array(COLOURS[person]) + wave[..., None])[inside]
    return np.clip(frame, 0, 255).astype(np.uint8)


@dataclass(frozen=True)
class Face:
    person: int
    x: float
    y: float
    side: float


def visible(image: Image) -> list[Face]:
    """What can be told from the pixels, as a model would."""
    found: list[Face] = []
    bright = image > 130
    for person, colour in enumerate(COLOURS):
        mask = (bright == (np.array(colour) > 130)).all(-1)
        ys, xs = np.nonzero(mask)
        if len(xs) < 100:
            continue
        side = max(float(np.ptp(xs)), float(np.ptp(ys))) + 1
        if len(xs) >= 0.5 * side**2:
            found.append(Face(person, (xs.min() + xs.max()) / 2, (ys.min() + ys.max()) / 2, side))
    return found


@dataclass
class Eyes:
    """Detector. `blind`: calls that see nothing; `ghosts`: middles of what it alone takes for faces."""

    calls: int = 0
    blind: Callable[[int], bool] = lambda call: False
    ghosts: Sequence[tuple[float, float]] = ()

    def warm(self) -> None: ...

    def detect(self, image: Image, *, size: int = 640, threshold: float = 0.5) -> list[Detection]:
        self.calls += 1
        if self.blind(self.calls):
            return []
        faces = [(f.x, f.y, f.side) for f in visible(image)]
        if image.shape[:2] == (HEIGHT, WIDTH):
            faces += [(x, y, 60.0) for x, y in self.ghosts]
        return [_detection(*face) for face in faces]


@dataclass
class Touch:
    """Landmarker: the face nearest to where it is sought. `numb(x, y)`: places where it finds none."""

    calls: int = 0
    missed: set[int] = field(default_factory=set)
    frame: int = 0

    def warm(self) -> None: ...

    def locate(self, image: Image, points: Sequence[Floats], *, passes: int = 2) -> list[Landmarks]:
        return [self._nearest(image, five) for five in points]

    def follow(self, look: Look, meshes: Sequence[Floats]) -> list[Landmarks]:
        found: list[Landmarks] = []
        for mesh in meshes:
            near = Nearby(look, mesh)
            corner = np.array([*near.span[:2], 0], np.float32)
            local = self._nearest(near.pixels, five_points(mesh) - corner[:2])
            found.append(Landmarks(local.mesh + corner, local.score))
        return found

    def _nearest(self, image: Image, five: Floats) -> Landmarks:
        self.calls += 1
        x, y = five.mean(0).tolist()
        faces = sorted(visible(image), key=lambda f: float(np.hypot(f.x - x, f.y - y)))
        near = faces and np.hypot(faces[0].x - x, faces[0].y - y) < faces[0].side
        if not near or self.frame in self.missed:
            return Landmarks(mesh_at(x, y, 50), 0.1)
        return Landmarks(mesh_at(faces[0].x, faces[0].y, faces[0].side), 0.99)


class Memory:
    """Embedder: a direction for each colour, and some doubt."""

    def __init__(self) -> None:
        self.calls = 0
        self._random = np.random.default_rng(3)

    def warm(self) -> None: ...

    def embed(self, image: Image, points: Sequence[Floats]) -> Floats:
        self.calls += len(points)
        return np.stack([self._one(image, five) for five in points])

    def _one(self, image: Image, five: Floats) -> Floats:
        x, y = five.mean(0).tolist()
        faces = sorted(visible(image), key=lambda f: float(np.hypot(f.x - x, f.y - y)))
        vector = self._random.normal(0, 0.02, 512)
        vector[faces[0].person if faces else 100] += 1
        return (vector * 20).astype(np.float32)


def vector_of(person: int) -> Floats:
    return np.eye(512, dtype=np.float32)[person]


def watch(
    scene: Scene,
    frames: int,
    *,
    eyes: Eyes | None = None,
    touch: Touch | None = None,
    memory: Memory | None = None,
    cuts: Sequence[int] = (),
    pace: Pace | None = None,
) -> Cast:
    touch, pace = touch or Touch(), pace or Pace()
    tracker = Tracker(Models(eyes or Eyes(), touch, memory), pace)
    for index in range(frames):
        touch.frame = index
        tracker.feed(Still(draw(scene(index))), index * 10, cut=index in cuts)
    return finish(tracker.finish(), pace.gap)


def chosen(cast: Cast, known: Known | None = None, **options: object) -> Tracks:
    return choose(cast, Options(**options), known or Known())[0]  # type: ignore[arg-type]


def swapped(tracks: Tracks) -> dict[int, list[tuple[float, float]]]:
    """For each frame the middles of the faces that get another."""
    found: dict[int, list[tuple[float, float]]] = {}
    for index, pts in enumerate(tracks.pts.tolist()):
        middles = [(p.mesh[:, :2].min(0) + p.mesh[:, :2].max(0)) / 2 for p in tracks.to_swap(pts)]
        found[index] = [(float(x), float(y)) for x, y in middles]
    return found


def _detection(x: float, y: float, side: float) -> Detection:
    half = side / 2
    box = np.array([x - half, y - half, x + half, y + half], np.float32)
    return Detection(box, 0.9, five_points(mesh_at(x, y, side)))

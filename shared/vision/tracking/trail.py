"""What was observed of one face while it was followed, and with what.

Plain data over numpy and the protocols.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shared.imaging.geometry import Doubles
from shared.vision.protocols import Detector, Embedder, Floats, Landmarker, Refiner
from shared.vision.tracking.meshes import Seen


@dataclass(frozen=True)
class Pace:
    """How much is looked at, counted in frames."""

    every: int = 5
    """From one detection to the next. At once at a cut and after a lost face."""
    size: int = 640
    """Longest side in pixels at which the detector looks."""
    coarse: int = 320
    """The same at every second detection while faces are followed, at a quarter of the cost: small faces that appear
    wait for the next."""
    gap: int = 4
    """How long a lost face is waited for. A shorter absence is bridged."""
    min_score: float = 0.5

    @property
    def back(self) -> int:
        """How far a new face is followed back, so that it is swapped from its first frame on."""
        return 2 * self.every


@dataclass(frozen=True)
class Models:
    detector: Detector
    landmarker: Landmarker
    embedder: Embedder | None = None
    """People are told apart by it; without one by small pictures of them, and not from one scene to the next."""
    refiner: Refiner | None = None
    """Measures five points more finely, at detections only: what they add to the mesh's hardly changes in between."""


@dataclass
class Trail:
    """All but the vectors and the offsets have an entry for each frame from `first` on."""

    first: int
    meshes: Seen = field(default_factory=Seen)
    """[468, 3], pixels of the frame; None where the face was missed."""
    ways: list[Doubles | None] = field(default_factory=list)
    """[3, 3]: how its pixels moved since the frame before, where they tell."""
    boxes: list[Floats | None] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    """The detector's last."""
    hidden: list[bool] = field(default_factory=list)
    """Where it was missed: whether something else was seen in its place."""
    vectors: list[Floats] = field(default_factory=list)
    """[512] each, raw, of some frames in which it was seen well."""
    small: Floats = field(default_factory=lambda: np.zeros((16, 16, 3), np.float32))
    """Running mean of small pictures of it (see `appearance`)."""
    offsets: list[tuple[int, Floats]] = field(default_factory=list)
    """Frame and [5, 2]: a refiner's points minus the mesh's, turned and scaled to the canonical face."""
    joined_before: bool = False
    """Whether it begins with its scene, or with the clip: the face does not appear, the picture does."""
    joined_after: bool = False

    @property
    def stop(self) -> int:
        return self.first + len(self.meshes)

    def prepend(self, back: Trail) -> None:
        """What was seen on the way back from its first frame: `back` begins with that frame and goes against time."""
        count = len(back.meshes) - 1
        self.first -= count
        self.meshes.prepend([back.meshes[frame] for frame in range(count, 0, -1)])
        self.boxes[:0] = back.boxes[:0:-1]
        self.hidden[:0] = back.hidden[:0:-1]
        self.scores[:0] = [self.scores[0]] * count
        if count:
            ways = [None if way is None else np.asarray(np.linalg.inv(way), np.float64) for way in back.ways[:0:-1]]
            self.ways[:1] = [None, *ways]

    def keep(self, frames: int) -> None:
        """Forget all but the first frames."""
        self.meshes.keep(frames)
        for values in (self.ways, self.boxes, self.scores, self.hidden):
            del values[frames:]

    def trim(self) -> None:
        """Forget the missed frames at the end."""
        seen = np.flatnonzero(self.meshes.seen)
        self.keep(int(seen[-1]) + 1 if len(seen) else 0)

"""One face being followed: where it is expected, where it is found, and what is remembered of it.

The crop in which the mesh is measured moves with the face's pixels (`flow`) and only slowly with the mesh itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shared.imaging.geometry import Doubles, similarity
from shared.imaging.look import Look
from shared.vision.canonical import canonical
from shared.vision.finder import fitting
from shared.vision.geometry import five_of_68, five_points
from shared.vision.measured import SURE
from shared.vision.protocols import Detection, Embedder, Floats, FoundFace, Landmarker, Refiner
from shared.vision.tracking.appearance import Appearance, difference, small_picture, vector_of
from shared.vision.tracking.flow import Patch, motion, moved, patch, shift
from shared.vision.tracking.looks import Nearby, follow
from shared.vision.tracking.trail import Trail

_PULL = np.float32(0.3)
"""Part of the way to the mesh that the crop goes in a frame, beside the motion of the pixels."""
_ASTRAY = 0.25
"""Of the face's size: pixels that moved this far from the mesh belong to something else."""
_SLOWER = 0.7
"""Of its speed, a missed face keeps this in each frame."""
_OFTEN, _LEARN = 5, np.float32(0.4)
"""What a face looks like is learned at every fifth frame, that part of the way."""
_VECTORS = 12
"""A recogniser is asked so often at most of one trail."""
_STRAIGHT = 40.0
"""Degrees of yaw beyond which it is not asked."""


@dataclass(frozen=True)
class Seen:
    """A face in one frame, before it is known whose it is."""

    face: FoundFace
    near: Nearby
    patch: Patch
    seed: Floats
    """[468, 3]: where the crop of the mesh lay."""
    way: Doubles | None

    @cached_property
    def looks(self) -> Appearance:
        """Made when asked for, which must be before the next frame."""
        return Appearance(small_picture(self.near.look, self.face.mesh))

    @cached_property
    def centre(self) -> Floats:
        return middle(self.face.mesh)

    @cached_property
    def size(self) -> float:
        return size_of(self.face.mesh)


class Pursuit:
    def __init__(self, first: int, seen: Seen) -> None:
        self.trail = Trail(first)
        self.missing = 0
        self.strikes = 0
        """Detections in a row that did not see it."""
        self.sure = 0
        """Frames up to and with the last one in which a detection did."""
        self.looks = seen.looks
        self.face = seen.face
        self.near: Nearby | None = None
        """The part of the frame around it; None while it is missed."""
        self._anchor = seen.seed
        self._speed = np.zeros(2, np.float32)
        self._patch = seen.patch
        self._ratio = np.zeros(4, np.float32)
        self.take(replace(seen, way=None))
        self.confirm(seen.face.box, seen.face.score)

    @property
    def expected(self) -> Floats:
        """[468, 3]"""
        return moved(self._anchor, shift(*self._speed.tolist()))

    def seek(self, look: Look, landmarker: Landmarker) -> Seen | None:
        """The face in the next frame, or none. May be another's that took its place: see `pairing`."""
        guess = self.expected
        after = patch(look, guess)
        way = None if self.missing else motion(self._patch, after, self._anchor, guess)
        seed = guess if way is None else moved(self._anchor, way)
        found = follow(look, landmarker, seed)
        if found is None:
            return None
        face = fitting(Detection(self._box(found.mesh), self.face.score, five_points(found.mesh)), found)
        if face is None:
            return None
        if float(np.linalg.norm(middle(seed) - middle(face.mesh))) > _ASTRAY * size_of(face.mesh):
            way, seed = None, face.mesh
        return Seen(face, Nearby(look, guess), after, seed, way)

    def take(self, seen: Seen) -> None:
        """It was seen."""
        before = middle(self._anchor)
        self._anchor = seen.seed + _PULL * (seen.face.mesh - seen.seed)
        self._speed = middle(seen.seed) - before if not self.missing else np.zeros(2, np.float32)
        self._patch, self.face, self.near, self.missing = seen.patch, seen.face, seen.near, 0
        if len(self.trail.meshes) % _OFTEN == 0:
            small = self.looks.small + _LEARN * (seen.looks.small - self.looks.small)
            self.looks, self.trail.small = Appearance(small, self.looks.vector), small
        self._note(seen.face, seen.way, hidden=False)

    def miss(self, look: Look) -> None:
        """It was not seen."""
        self._anchor = self.expected
        self._speed = self._speed * np.float32(_SLOWER)
        self.missing += 1
        self.near = None
        there = Appearance(small_picture(look, self._anchor))
        self._note(None, None, hidden=difference(Appearance(self.looks.small), there) > 1)

    def vector(self, embedder: Embedder, every: int) -> None:
        """Take its vector where one is due: when it is found, and then ever more seldom."""
        count, age = len(self.trail.vectors), len(self.trail.meshes)
        due = count < _VECTORS and age >= every * count * count
        if due and self.near is not None and (abs(self.face.yaw) < _STRAIGHT or not count):
            self.trail.vectors.append(vector_of(self.near, self.face.mesh, embedder))
            self.looks = replace(self.looks, vector=np.sum(self.trail.vectors, axis=0))

    def refine(self, refiner: Refiner) -> None:
        """Ask a finer model for the five points of the last frame."""
        if self.near is None or self.near.hidden:
            return
        corner = np.array([*self.near.span[:2], 0], np.float32)
        local = replace(self.face, mesh=self.face.mesh - corner, box=self.face.box - np.tile(corner[:2], 2))
        (found,) = refiner.refine(self.near.pixels, [local])
        if found.score >= SURE:
            five = five_points(local.mesh)
            turn = similarity(five, five_points(canonical().mean))[:, :2]
            offset = ((five_of_68(found.points) - five) @ turn.T).astype(np.float32)
            self.trail.offsets.append((self.trail.stop - 1, offset))

    def confirm(self, box: Floats, score: float) -> None:
        """A detector saw the face of the last frame."""
        low, high = _bounds(self.face.mesh)
        self._ratio = ((box - np.concatenate([low, high])) / np.tile(high - low, 2)).astype(np.float32)
        self.face = replace(self.face, box=box, score=score)
        self.trail.boxes[-1], self.trail.scores[-1] = box, score
        self.strikes, self.sure = 0, len(self.trail.meshes)

    def _box(self, mesh: Floats) -> Floats:
        """As the detector would draw it."""
        low, high = _bounds(mesh)
        return (np.concatenate([low, high]) + self._ratio * np.tile(high - low, 2)).astype(np.float32)

    def _note(self, face: FoundFace | None, way: Doubles | None, *, hidden: bool) -> None:
        trail = self.trail
        trail.meshes.append(None if face is None else face.mesh)
        trail.boxes.append(None if face is None else face.box)
        trail.ways.append(way)
        trail.scores.append(self.face.score)
        trail.hidden.append(hidden)


def middle(mesh: Floats) -> Floats:
    """[2]"""
    return np.asarray(mesh[:, :2].mean(0), np.float32)


def size_of(mesh: Floats) -> float:
    """Longer side in pixels."""
    return max(float(np.ptp(mesh[:, :2], axis=0).max()), 1e-3)


def _bounds(mesh: Floats) -> tuple[Floats, Floats]:
    low, high = mesh[:, :2].min(0), mesh[:, :2].max(0)
    return low, np.maximum(high, low + np.float32(1e-3))

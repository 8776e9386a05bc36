"""Faces followed from frame to frame: detected now and then, measured by the mesh in every frame.

What is gathered here are observations; smoothing, gaps and choices come when the clip is over. Pure over the protocols.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from shared.imaging.look import Look
from shared.vision.protocols import Detection
from shared.vision.tracking import searching
from shared.vision.tracking.appearance import Appearance, difference, vector_of
from shared.vision.tracking.pairing import Own, contested, distinct, lies_on, pairs
from shared.vision.tracking.pursuit import Pursuit, Seen
from shared.vision.tracking.trail import Models, Pace, Trail

_STRIKES = 2
"""Detections in a row without a face that the mesh still sees: then it sees things."""
_SELDOM = 10
"""Detections between thorough searches of a scene in which no face was found."""


@dataclass(frozen=True)
class Followed:
    """What was observed in a clip."""

    pts: tuple[int, ...]
    cuts: tuple[int, ...]
    """Frames with which a new scene begins, but not the clip's first."""
    size: tuple[int, int]
    """Width and height of a frame."""
    trails: tuple[Trail, ...]


class Tracker:
    """Fed with one frame after the other. Looks stay in use for `Pace.back` frames."""

    def __init__(self, models: Models, pace: Pace) -> None:
        self._models, self._pace = models, pace
        self._pts: list[int] = []
        self._cuts: list[int] = []
        self._size = (0, 0)
        self._past: deque[Look] = deque(maxlen=pace.back - 1)
        self._live: list[Pursuit] = []
        self._done: list[Trail] = []
        self._since = 0
        """Frames since the last detection."""
        self._empty = 0
        """Detections in a row that found nothing."""
        self._coarse = False
        """Whether the last detection was."""

    def feed(self, look: Look, pts: int, *, cut: bool = False) -> None:
        """The next frame, upright. `cut`: a new scene begins with it; no face goes on."""
        begins = cut or not self._pts
        if cut and self._pts:
            self._cuts.append(len(self._pts))
            self._end_scene()
        self._pts.append(pts)
        self._size = look.size
        own = [Own(s, k) for k, p in enumerate(self._live) if (s := p.seek(look, self._models.landmarker))]
        found = distinct(own)
        self._since += 1
        near = contested(self._live, found)
        due = begins or self._since >= self._pace.every or len(found) < len(self._live) or bool(near)
        if due:
            self._coarse = not (begins or self._coarse) and 0 < len(found) == len(self._live)
        detections = self._detect(look, begins=begins) if due else []
        new = self._new(look, found, detections)
        found = distinct([*found, *new])
        self._pair(look, found)
        if due:
            regular = begins or (self._since >= self._pace.every and not self._coarse)
            self._confirm(look, detections, regular=regular)
            self._since = 0
        self._past.append(look)

    def finish(self) -> Followed:
        """After the last frame."""
        self._end_scene()
        for trail in self._done:
            trail.trim()
        trails = sorted((trail for trail in self._done if trail.meshes), key=lambda trail: trail.first)
        return Followed(tuple(self._pts), tuple(self._cuts), self._size, tuple(trails))

    def _detect(self, look: Look, *, begins: bool) -> list[Detection]:
        seldom = not self._live and self._empty % _SELDOM == _SELDOM - 1
        found = searching.detect(look, self._models, self._pace, thorough=begins or seldom, coarse=self._coarse)
        self._empty = 0 if found or begins else self._empty + 1
        return found

    def _new(self, look: Look, found: Sequence[Own], detections: Sequence[Detection]) -> list[Own]:
        """Faces at detections where none was found before."""
        free = [d for d in detections if not any(lies_on(d, own.seen.face.mesh) for own in found)]
        return [Own(seen, None) for seen in searching.measure(look, self._models, free)]

    def _pair(self, look: Look, found: Sequence[Own]) -> None:
        """Give each face to whom it belongs; begin, miss and end the others."""
        vectors: dict[int, Appearance] = {}

        def appear(seen: Seen) -> Appearance:
            if id(seen) not in vectors:
                vectors[id(seen)] = self._appear(seen)
            return vectors[id(seen)]

        doubtful = contested(self._live, found) | self._changed(found)
        chosen = pairs(self._live, found, doubtful, appear)
        live: list[Pursuit] = []
        for k, pursuit in enumerate(self._live):
            if k in chosen:
                pursuit.take(found[chosen[k]].seen)
                live.append(pursuit)
            elif pursuit.missing >= self._pace.gap:
                self._done.append(pursuit.trail)
            else:
                pursuit.miss(look)
                live.append(pursuit)
        self._live = live + [self._begin(own.seen) for i, own in enumerate(found) if i not in set(chosen.values())]
        if self._models.embedder is not None:
            for pursuit in self._live:
                pursuit.vector(self._models.embedder, self._pace.every)

    def _changed(self, found: Sequence[Own]) -> set[int]:
        """Faces that suddenly look like another's, where a recogniser can tell."""
        if self._models.embedder is None:
            return set()
        return {
            index
            for index, own in enumerate(found)
            if own.owner is not None
            and difference(Appearance(self._live[own.owner].looks.small), Appearance(own.seen.looks.small)) > 1
        }

    def _appear(self, seen: Seen) -> Appearance:
        if self._models.embedder is None:
            return seen.looks
        return Appearance(seen.looks.small, vector_of(seen.near, seen.face.mesh, self._models.embedder))

    def _begin(self, seen: Seen) -> Pursuit:
        """A new face, followed back to where it appeared: the detector comes by only now and then."""
        now = len(self._pts) - 1
        pursuit, back = Pursuit(now, seen), Pursuit(0, seen)
        for count, look in enumerate(reversed(self._past), start=1):
            earlier = back.seek(look, self._models.landmarker)
            if earlier is None or self._taken(now - count, earlier):
                break
            back.take(earlier)
        pursuit.trail.prepend(back.trail)
        pursuit.confirm(seen.face.box, seen.face.score)
        pursuit.trail.joined_before = pursuit.trail.first in (0, *self._cuts)
        return pursuit

    def _taken(self, frame: int, seen: Seen) -> bool:
        """Whether somebody else was followed there."""
        trails = [*self._done, *(pursuit.trail for pursuit in self._live)]
        meshes = [t.meshes[frame - t.first] for t in trails if t.first <= frame < t.stop]
        return any(mesh is not None and lies_on(seen.face, mesh) for mesh in meshes)

    def _confirm(self, look: Look, detections: Sequence[Detection], *, regular: bool) -> None:
        """Give the detector's boxes to the faces; end those that it has not seen for long."""
        for pursuit in [p for p in self._live if not p.missing]:
            same = [d for d in detections if lies_on(d, pursuit.face.mesh)]
            if same:
                best = max(same, key=lambda d: d.score)
                pursuit.confirm(best.box, best.score)
            elif regular and searching.seen_again(look, pursuit.face.mesh, self._models):
                pursuit.confirm(pursuit.face.box, pursuit.face.score)
            elif regular:
                pursuit.strikes += 1
            if regular and self._models.refiner is not None:
                pursuit.refine(self._models.refiner)
        for pursuit in [p for p in self._live if p.strikes >= _STRIKES]:
            pursuit.trail.keep(pursuit.sure)
            self._live.remove(pursuit)
            self._done.append(pursuit.trail)

    def _end_scene(self) -> None:
        for pursuit in self._live:
            pursuit.trail.joined_after = not pursuit.missing
            self._done.append(pursuit.trail)
        self._live = []
        self._past.clear()
        self._empty = 0

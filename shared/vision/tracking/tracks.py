"""Who is where in every frame of a clip: what detect finds out and swap works by.

Only faces that are there take room. Knows numpy; `record` makes a file of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.vision.protocols import Floats
from shared.vision.tracking.meshes import Meshes

NOBODY = -1
"""In `sources`: a track that the job does not mean."""


class Place(NamedTuple):
    """One face in one frame, in pixels of the frame as it is shown: upright and square."""

    track: int
    source: int
    """Index of the job's source (with a mapping), 0 for the one identity of all sources, or NOBODY."""
    mesh: Floats
    """[468, 3]"""
    points: Floats | None
    """[5, 2] where a finer model measured them."""
    box: Floats
    """[4]: x0, y0, x1, y1"""
    score: float
    strength: float
    """0..1, how much of the new face is to be seen."""


@dataclass(frozen=True)
class Tracks:
    """[m, ...] arrays have a row for each face in each frame, in the order of frames, then of tracks."""

    pts: NDArray[np.int64]
    """[frames]: ticks, rising, also of the frames of the part before."""
    cuts: NDArray[np.int32]
    """Frames (indices into `pts`) with which a new scene begins, rising."""
    persons: NDArray[np.int16]
    """[tracks]: tracks of one number show one person, as far as that could be told within the clip."""
    sources: NDArray[np.int16]
    """[tracks]: see Place."""
    frame: NDArray[np.int32]
    """[m]: index into `pts`."""
    track: NDArray[np.int16]
    """[m]: index into `persons`."""
    meshes: Floats | Meshes
    """[m, 468, 3]"""
    points: Floats
    """[m, 5, 2], NaN where no finer model measured them."""
    boxes: Floats
    """[m, 4]"""
    scores: Floats
    """[m]: the detector's last."""
    strengths: Floats
    """[m]"""

    def at(self, pts: int) -> list[Place]:
        """The faces of the frame of that time, also those that are not meant; none for a time that no frame has."""
        index = int(np.searchsorted(self.pts, pts))
        if index == len(self.pts) or self.pts[index] != pts:
            return []
        return [self._place(row) for row in range(*np.searchsorted(self.frame, [index, index + 1]).tolist())]

    def to_swap(self, pts: int) -> list[Place]:
        """The faces of that frame which are meant and to be seen."""
        return [place for place in self.at(pts) if place.source != NOBODY and place.strength > 0]

    def dense(self, track: int) -> Floats:
        """[frames, 468, 3] of one track, NaN where it is absent."""
        meshes = np.full((len(self.pts), 468, 3), np.nan, np.float32)
        rows = self.track == track
        meshes[self.frame[rows]] = self.meshes[rows]
        return meshes

    def _place(self, row: int) -> Place:
        track = int(self.track[row])
        points = self.points[row]
        return Place(
            track=track,
            source=int(self.sources[track]),
            mesh=self.meshes[row],
            points=points if np.isfinite(points).all() else None,
            box=self.boxes[row],
            score=float(self.scores[row]),
            strength=float(self.strengths[row]),
        )

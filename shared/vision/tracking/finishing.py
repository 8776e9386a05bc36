"""From what was observed to tracks: gaps bridged, meshes smoothed, ends faded, nobody chosen yet.

Knows trails, smoothing and the tracks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shared.imaging.geometry import Doubles, similarity
from shared.vision.canonical import canonical
from shared.vision.geometry import five_points
from shared.vision.protocols import Floats
from shared.vision.tracking.meshes import Meshes
from shared.vision.tracking.persons import persons_of
from shared.vision.tracking.pursuit import middle, size_of
from shared.vision.tracking.smoothing import average, runs
from shared.vision.tracking.tracker import Followed
from shared.vision.tracking.tracks import NOBODY, Tracks
from shared.vision.tracking.trail import Trail

FADE = 3
"""Frames in which a face that appears or goes is faded; at cuts and at the clip's ends, where it goes on, none."""
_SHORTEST = 3
_SURE = 0.7
"""A face of fewer frames than the first, with a lower score than the second, is taken for none."""
_BESIDE = 0.6
"""Of its size: a face that is found again so near to where it was lost has not been away."""


class _Rows(NamedTuple):
    """As in Tracks."""

    meshes: Meshes
    points: Floats
    boxes: Floats
    scores: Floats
    strengths: Floats

    @classmethod
    def room(cls, count: int) -> _Rows:
        return cls(Meshes.room(count), *(np.empty((count, *shape), np.float32) for shape in ((5, 2), (4,), (), ())))


@dataclass(frozen=True)
class Cast:
    """Everybody who is in a clip."""

    tracks: Tracks
    """`sources` are all NOBODY."""
    vectors: tuple[Floats | None, ...]
    """[512] for each track, raw: the sum of those of its good frames."""


def finish(followed: Followed, gap: int, fade: int = FADE) -> Cast:
    """`gap`: as in `Pace`. What was observed is used up: a trail's meshes are gone when they are smoothed."""
    trails = [trail for trail in followed.trails if _is_face(trail)]
    _join(trails, followed.cuts, gap)
    persons = persons_of(trails, followed.cuts)
    seen = [_seen(trail) for trail in trails]
    frame = np.concatenate(
        [np.empty(0, np.int32), *(np.flatnonzero(s) + t.first for s, t in zip(seen, trails, strict=True))]
    )
    track = np.repeat(np.arange(len(trails)), [int(s.sum()) for s in seen])
    order = np.lexsort((track, frame))
    rows, places = _Rows.room(len(order)), np.argsort(order)
    for number, trail in enumerate(trails):
        _fill(rows, places[track == number], trail, seen[number], fade)
        trail.meshes.clear()
    tracks = Tracks(
        pts=np.array(followed.pts, np.int64),
        cuts=np.array(followed.cuts, np.int32),
        persons=np.array(persons, np.int16),
        sources=np.full(len(trails), NOBODY, np.int16),
        frame=frame[order].astype(np.int32),
        track=track[order].astype(np.int16),
        **rows._asdict(),
    )
    return Cast(tracks, tuple(np.sum(t.vectors, axis=0) if t.vectors else None for t in trails))


def _is_face(trail: Trail) -> bool:
    return (
        trail.meshes.seen.sum() >= _SHORTEST or max(trail.scores) >= _SURE or trail.joined_before or trail.joined_after
    )


def _join(trails: Sequence[Trail], cuts: Sequence[int], gap: int) -> None:
    """Trails that are one face, lost and found again at once: neither end is faded."""
    for before in trails:
        for after in trails:
            near = 0 <= after.first - before.stop <= gap
            if not near or any(before.stop <= cut <= after.first for cut in cuts):
                continue
            last, first = before.meshes[-1], after.meshes[0]
            assert last is not None and first is not None  # noqa: PT018 - trails are trimmed
            if float(np.linalg.norm(middle(last) - middle(first))) < _BESIDE * size_of(last):
                before.joined_after = after.joined_before = True


def _seen(trail: Trail) -> NDArray[np.bool_]:
    """[frames]: whether it is to be seen: where it was, and where it was missed and nothing else was in its place."""
    return trail.meshes.seen | ~np.array(trail.hidden, np.bool_)


def _fill(rows: _Rows, at: NDArray[np.intp], trail: Trail, seen: NDArray[np.bool_], fade: int) -> None:
    """`at`: the rows of those of its frames in which it is to be seen."""
    offsets, place = _offsets(trail), 0
    for start, meshes in runs(len(trail.meshes), trail.meshes.bridged, trail.ways):
        frames = slice(start, start + len(meshes))
        shown = meshes[seen[frames]]
        own = at[place : place + len(shown)]
        place += len(own)
        rows.meshes.put(own, shown)
        rows.points[own] = _points(shown, offsets[frames][seen[frames]])
    rows.boxes[at] = _bridged(trail.boxes)[seen]
    rows.scores[at] = np.array(trail.scores, np.float32)[seen]
    rows.strengths[at] = _strengths(trail, fade)[seen]


def _bridged(values: Sequence[Floats | None]) -> Floats:
    """[frames, ...]: missing ones on the straight line between their neighbours."""
    known = [index for index, value in enumerate(values) if value is not None]
    result = np.stack([value for value in values if value is not None])[np.searchsorted(known, np.arange(len(values)))]
    for left, right in pairwise(known):
        for index in range(left + 1, right):
            share = np.float32((index - left) / (right - left))
            result[index] = result[left] + share * (result[right] - result[left])
    return result


def _strengths(trail: Trail, fade: int) -> Floats:
    """[frames]: rising from the first, falling to the last; above 0 in each."""
    index = np.arange(len(trail.meshes))
    rise = np.inf if trail.joined_before else (index + 1) / (fade + 1)
    fall = np.inf if trail.joined_after else (len(index) - index) / (fade + 1)
    t = np.minimum(np.minimum(rise, fall), 1) * np.ones(len(index))
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def _offsets(trail: Trail) -> Doubles:
    """[frames, 5, 2]: as in a trail, in between those frames that a refiner was asked about; NaN where it was not."""
    count = len(trail.meshes)
    if not trail.offsets:
        return np.full((count, 5, 2), np.nan)
    at = np.array([frame - trail.first for frame, _ in trail.offsets], np.float64)
    offsets = np.stack([offset for _, offset in trail.offsets]).astype(np.float64)
    offsets = average(offsets, 1.0) if len(offsets) > 2 else offsets
    flat = [np.interp(np.arange(count), at, column) for column in offsets.reshape(len(at), -1).T]
    return np.stack(flat, 1).reshape(count, 5, 2)


def _points(meshes: Floats, offsets: Doubles) -> Floats:
    """[frames, 5, 2]: the meshes' five points, moved by what a refiner said; NaN where it said nothing."""
    points = np.full((len(meshes), 5, 2), np.nan, np.float32)
    face = five_points(canonical().mean)
    for index in np.flatnonzero(np.isfinite(offsets).all((1, 2))).tolist():
        five = five_points(meshes[index])
        turn: Doubles = similarity(face, five)[:, :2]
        points[index] = five + offsets[index] @ turn.T
    return points

"""Which tracks a job means, and which source each of them gets.

Faces are told by their order only once: in the first frame of the clip that shows enough of them. From there on people
are known by a recogniser's vectors, in later parts of the video by a `Gallery` of them. Without a recogniser the order
counts anew in each scene of each part. Pure over the tracks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shared.errors import InvalidOptionError
from shared.events.choices import Options, by_who
from shared.rejections import NoFaceInReferenceError
from shared.vision.finder import MEASURABLE
from shared.vision.protocols import Floats
from shared.vision.tracking.appearance import cosine
from shared.vision.tracking.finishing import Cast
from shared.vision.tracking.gallery import Gallery
from shared.vision.tracking.persons import SAME
from shared.vision.tracking.tracks import NOBODY, Tracks


@dataclass(frozen=True)
class Known:
    """What is known of people from elsewhere."""

    reference: Floats | None = None
    """[512]: the vector of the person on the reference picture."""
    gallery: Gallery | None = None
    """Of an earlier part of the video."""


def choose(cast: Cast, options: Options, known: Known) -> tuple[Tracks, Gallery | None]:
    """The tracks with their sources, and who is meant from now on: what was known, or what this part tells, if it does.

    Tracks that are nowhere as large or sure as the job asks are nobody's. A clip without a face that is meant is no
    error: another part may have one. Raises NoFaceInReferenceError without the vector that `faces: reference` needs,
    InvalidOptionError.
    """
    if options.faces == "reference" and known.reference is None:
        raise NoFaceInReferenceError("The job names no reference picture.")
    tracks = cast.tracks
    usable = _usable(tracks, options)
    gallery = known.gallery
    if known.reference is not None:
        sources = _alike(cast, known.reference, options.similarity)
    elif not by_who(options):
        sources = np.zeros(len(usable), np.int16)
    elif any(vector is not None for vector in cast.vectors):
        gallery = gallery or _introduced(cast, options)
        sources = _recognised(cast, gallery)
    else:
        sources = _by_scene(tracks, options)
    return replace(tracks, sources=np.where(usable, sources, NOBODY).astype(np.int16)), gallery


def _usable(tracks: Tracks, options: Options) -> NDArray[np.bool_]:
    """[tracks]: by the largest size and the best score of each."""
    sides = np.minimum(tracks.boxes[:, 2] - tracks.boxes[:, 0], tracks.boxes[:, 3] - tracks.boxes[:, 1])
    largest, best = np.zeros(len(tracks.sources)), np.zeros(len(tracks.sources))
    np.maximum.at(largest, tracks.track, sides)
    np.maximum.at(best, tracks.track, tracks.scores)
    return np.asarray((largest >= max(options.min_face, MEASURABLE)) & (best >= options.min_score), np.bool_)


def _alike(cast: Cast, reference: Floats, similarity: float) -> NDArray[np.int16]:
    """Of a person all tracks or none, so that nobody flickers."""
    sums = _people(cast)
    meant = {person for person, vector in sums.items() if cosine(vector, reference) >= similarity}
    return np.array([0 if person in meant else NOBODY for person in cast.tracks.persons.tolist()], np.int16)


def _people(cast: Cast) -> dict[int, Floats]:
    """The sum of the vectors of each person that has any."""
    sums: dict[int, Floats] = {}
    for person, vector in zip(cast.tracks.persons.tolist(), cast.vectors, strict=True):
        if vector is not None:
            sums[person] = vector + sums.get(person, np.float32(0))
    return sums


def _introduced(cast: Cast, options: Options) -> Gallery | None:
    """None where this clip does not show all who are meant."""
    sums, roles = _people(cast), _roles(cast.tracks, options, range(len(cast.tracks.pts)))
    people = [person for person in sorted(roles) if person in sums]
    if not people:
        return None
    return Gallery(np.stack([sums[p] for p in people]), np.array([roles[p] for p in people], np.int16))


def _recognised(cast: Cast, gallery: Gallery | None) -> NDArray[np.int16]:
    sources = np.full(len(cast.vectors), NOBODY, np.int16)
    sums = _people(cast)
    for person, vector in sums.items() if gallery else ():
        assert gallery is not None
        scores = [cosine(vector, one) for one in gallery.vectors]
        if max(scores) >= SAME:
            sources[cast.tracks.persons == person] = gallery.sources[int(np.argmax(scores))]
    return sources


def _by_scene(tracks: Tracks, options: Options) -> NDArray[np.int16]:
    sources = np.full(len(tracks.sources), NOBODY, np.int16)
    edges = [0, *tracks.cuts.tolist(), len(tracks.pts)]
    for start, stop in pairwise(edges):
        roles = _roles(tracks, options, range(start, stop))
        inside = np.unique(tracks.track[(tracks.frame >= start) & (tracks.frame < stop)])
        for track in inside.tolist():
            sources[track] = roles.get(int(tracks.persons[track]), NOBODY)
    return sources


def _roles(tracks: Tracks, options: Options, frames: range) -> Mapping[int, int]:
    """Person to source, by what these frames show."""
    if not options.mapping and options.faces == "one":
        return _largest(tracks, frames)
    wanted = {pair.target: pair.source for pair in options.mapping} or {_index(options.faces): 0}
    for frame in frames:
        rows = np.nonzero(tracks.frame == frame)[0]
        if len(rows) > max(wanted):
            ranked = rows[_order(tracks, rows, options.order)]
            return {int(tracks.persons[tracks.track[ranked[index]]]): wanted[index] for index in wanted}
    return {}


def _index(faces: str) -> int:
    if not (faces.isascii() and faces.isdigit() and len(faces) <= 4):
        raise InvalidOptionError(
            f"faces is neither a known word nor an index: {faces!r:.40}", context={"field": "faces"}
        )
    return int(faces)


def _largest(tracks: Tracks, frames: range) -> Mapping[int, int]:
    """Whose face covers most of the picture, all frames together."""
    inside = (tracks.frame >= frames.start) & (tracks.frame < frames.stop)
    if not inside.any():
        return {}
    areas = np.prod(tracks.boxes[:, 2:] - tracks.boxes[:, :2], axis=1)[inside]
    sums = np.bincount(tracks.persons[tracks.track[inside]], weights=areas)
    return {int(np.argmax(sums)): 0}


def _order(tracks: Tracks, rows: NDArray[np.intp], order: str) -> list[int]:
    """As `shared.vision.choice.ranked`: by `position`, `size` or `score`."""
    boxes = tracks.boxes[rows]
    centres = [tuple(((box[:2] + box[2:]) / 2).tolist()) for box in boxes]
    by_position = sorted(range(len(rows)), key=lambda k: centres[k])
    keys: dict[str, Sequence[float]] = {
        "size": (-np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)).tolist(),
        "score": (-tracks.scores[rows]).tolist(),
    }
    return sorted(by_position, key=keys[order].__getitem__) if order in keys else by_position

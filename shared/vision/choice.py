"""Which of the faces found are meant.

Pure functions over `find_faces`' list, whose order they keep. A face's size is the shorter side of its box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shared.errors import InvalidOptionError, JsonValue
from shared.events.choices import Pairing
from shared.rejections import (
    AmbiguousReferenceFaceError,
    AmbiguousSourceFaceError,
    FaceTooSmallError,
    NoFaceInReferenceError,
    NoFaceInSourceError,
    NoFaceInTargetError,
    NoMatchingFaceError,
)
from shared.vision.finder import MEASURABLE, side
from shared.vision.protocols import Floats, FoundFace

_NEAR_EQUAL = 0.75
"""A second source face at least this large, side by side with the largest, is a reason to ask."""
_TURNED = 35.0
_SMALL = 80.0
"""Sources turned farther or smaller than this give a weak likeness (engine.md section 8)."""


class Targets(NamedTuple):
    """The target faces to be swapped, from left to right."""

    faces: list[FoundFace]
    sources: tuple[int, ...] = ()
    """For each the index of its source; empty: all get the same identity."""


@dataclass(frozen=True)
class Usable:
    """What a target face must be to be swapped."""

    min_face: int
    """Pixels."""
    min_score: float = 0.0

    def sure(self, faces: Sequence[FoundFace]) -> list[FoundFace]:
        """Raises NoFaceInTargetError (context: `score`, `minimum`) when none is."""
        found = [face for face in faces if face.score >= self.min_score]
        if not found:
            best = round(max(face.score for face in faces), 4)
            raise NoFaceInTargetError(
                f"No face of the target has a score of {self.min_score:g}",
                context={"score": best, "minimum": self.min_score},
            )
        return found

    def large(self, faces: Sequence[FoundFace]) -> list[FoundFace]:
        """Raises FaceTooSmallError (context: `size`, `minimum` in pixels) when none is."""
        found = [face for face in faces if side(face.box) >= max(self.min_face, MEASURABLE)]
        if not found:
            raise _too_small(_largest(faces), "target", max(self.min_face, int(MEASURABLE)))
        return found


def choose_targets(
    faces: Sequence[FoundFace], how: str, min_face: int, *, order: str = "position", min_score: float = 0.0
) -> list[FoundFace]:
    """The target faces to be swapped, in their order.

    `how`: `many` (all that are usable), `one` (the largest), or an index into `ranked(faces, order)`, counted before
    small and unsure ones are dropped, so that it depends on neither `min_face` nor `min_score`.
    Raises NoFaceInTargetError (also for an index beyond the last face), FaceTooSmallError, InvalidOptionError.
    """
    if not faces:
        raise NoFaceInTargetError("No face was found in the target picture")
    usable = Usable(min_face, min_score)
    if how == "many":
        return usable.large(usable.sure(faces))
    if how == "one":
        return usable.large([_largest(usable.sure(faces))])
    index = _index(how, "faces", len(faces), NoFaceInTargetError)
    return usable.large(usable.sure([faces[ranked(faces, order)[index]]]))


def choose_mapped(faces: Sequence[FoundFace], mapping: Sequence[Pairing], usable: Usable, order: str) -> Targets:
    """The faces that a mapping names by index into `ranked(faces, order)`, each with its source.

    All of them must be usable: what the caller named is never left out in silence. Raises NoFaceInTargetError,
    FaceTooSmallError.
    """
    counted = ranked(faces, order)
    pairs = []
    for pair in mapping:
        place = counted[_index(str(pair.target), "mapping", len(faces), NoFaceInTargetError)]
        usable.large(usable.sure([faces[place]]))
        pairs.append((place, pair.source))
    pairs.sort()
    return Targets([faces[place] for place, _ in pairs], tuple(source for _, source in pairs))


def choose_alike(faces: Sequence[FoundFace], vectors: Floats, reference: Floats, similarity: float) -> list[FoundFace]:
    """The faces whose vector [n, 512] has a cosine of at least `similarity` with that of the reference [512].

    Raises NoMatchingFaceError (context: `similarity` of the most alike, `minimum`).
    """
    cosines = _unit(vectors) @ _unit(reference)
    alike = [face for face, cosine in zip(faces, cosines, strict=True) if cosine >= similarity]
    if not alike:
        best = round(float(cosines.max()), 4)
        raise NoMatchingFaceError(
            f"No face of the target is the reference's: the most alike has {best:g}, {similarity:g} is needed",
            context={"similarity": best, "minimum": similarity},
        )
    return alike


def ranked(faces: Sequence[FoundFace], order: str) -> list[int]:
    """Places in `faces` in the order in which an index counts: `position` (as found: left to right, then top to
    bottom), `size` (largest first) or `score` (surest first); equal ones stay as they were found."""
    keys = {"size": [-_area(face) for face in faces], "score": [-face.score for face in faces]}
    return sorted(range(len(faces)), key=keys[order].__getitem__) if order in keys else list(range(len(faces)))


def choose_source(faces: Sequence[FoundFace], how: str) -> FoundFace:
    """The source face.

    `how`: `one` (the largest, if no other is nearly as large), `largest`, or an index counted from the left.
    A small source is used, since a likeness from 40 pixels is better than none: see `source_warnings`.
    Raises NoFaceInSourceError, AmbiguousSourceFaceError (context: `faces`, `boxes`), FaceTooSmallError for a face that
    no mesh can be fitted to, InvalidOptionError.
    """
    if not faces:
        raise NoFaceInSourceError("No face was found in the source picture")
    if how not in ("one", "largest"):
        chosen = faces[_index(how, "source_face", len(faces), NoFaceInSourceError)]
    else:
        chosen = _largest(faces)
        if how == "one":
            _ask(faces, chosen, "source", AmbiguousSourceFaceError)
    return _measurable(chosen, "source")


def choose_reference(faces: Sequence[FoundFace]) -> FoundFace:
    """The face of the picture that says who is meant: the largest, if no other is nearly as large.

    Raises NoFaceInReferenceError, AmbiguousReferenceFaceError (context as for a source), FaceTooSmallError.
    """
    if not faces:
        raise NoFaceInReferenceError("No face was found in the reference picture")
    chosen = _largest(faces)
    _ask(faces, chosen, "reference", AmbiguousReferenceFaceError)
    return _measurable(chosen, "reference")


def source_warnings(face: FoundFace) -> list[str]:
    """What will weaken the likeness, as stable words: `source_turned` (yaw beyond 35 degrees), `source_small` (below
    80 pixels). Nothing is refused for it: the swap is still right, only weaker."""
    warnings = ["source_turned"] if abs(face.yaw) > _TURNED else []
    return warnings + (["source_small"] if side(face.box) < _SMALL else [])


def _ask(
    faces: Sequence[FoundFace],
    chosen: FoundFace,
    where: str,
    error: type[AmbiguousSourceFaceError | AmbiguousReferenceFaceError],
) -> None:
    rivals = [face for face in faces if _area(face) ** 0.5 >= _NEAR_EQUAL * _area(chosen) ** 0.5]
    if len(rivals) > 1:
        boxes: list[JsonValue] = [_box(face) for face in faces]
        raise error(
            f"The {where} shows {len(faces)} faces, {len(rivals)} of them about equally large",
            context={"faces": len(faces), "boxes": boxes},
        )


def _measurable(face: FoundFace, where: str) -> FoundFace:
    if side(face.box) < MEASURABLE:
        raise _too_small(face, where, int(MEASURABLE))
    return face


def _unit(vectors: Floats) -> Floats:
    """Rows of length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def _index(how: str, field: str, count: int, missing: type[NoFaceInSourceError | NoFaceInTargetError]) -> int:
    if not (how.isascii() and how.isdigit()):
        raise InvalidOptionError(f"{field} is neither a known word nor an index: {how!r:.40}", context={"field": field})
    if len(how) > 4 or int(how) >= count:
        raise missing(f"There is no face number {how:.12}: {count} found, counted from 0", context={"faces": count})
    return int(how)


def _too_small(face: FoundFace, where: str, minimum: int) -> FaceTooSmallError:
    size = round(side(face.box), 1)
    return FaceTooSmallError(
        f"The largest {where} face measures {size:g} pixels, at least {minimum} are needed",
        context={"size": size, "minimum": minimum, "box": _box(face)},
    )


def _largest(faces: Sequence[FoundFace]) -> FoundFace:
    return max(faces, key=_area)


def _area(face: FoundFace) -> float:
    x0, y0, x1, y1 = (float(v) for v in face.box)
    return (x1 - x0) * (y1 - y0)


def _box(face: FoundFace) -> list[JsonValue]:
    """x, y, width, height."""
    x0, y0, x1, y1 = (round(float(v), 1) for v in face.box)
    return [x0, y0, round(x1 - x0, 1), round(y1 - y0, 1)]

"""Which of the faces found are meant.

Pure functions over `find_faces`' list, whose order they keep. A face's size is the shorter side of its box.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import (
    AmbiguousSourceFaceError,
    FaceTooSmallError,
    InvalidOptionError,
    JsonValue,
    NoFaceInSourceError,
    NoFaceInTargetError,
)
from shared.vision.finder import MEASURABLE, side
from shared.vision.protocols import FoundFace

_NEAR_EQUAL = 0.75
"""A second source face at least this large, side by side with the largest, is a reason to ask."""
_TURNED = 35.0
_SMALL = 80.0
"""Sources turned farther or smaller than this give a weak likeness (engine.md section 8)."""


def choose_targets(faces: Sequence[FoundFace], how: str, min_face: int) -> list[FoundFace]:
    """The target faces to be swapped, in their order.

    `how`: `many` (all of at least `min_face` pixels), `one` (the largest), or an index into `faces`, counted from the
    left and before small ones are dropped, so that it does not depend on `min_face`.
    Raises NoFaceInTargetError (also for an index beyond the last face), FaceTooSmallError (context: `size`, `minimum`
    in pixels), InvalidOptionError.
    """
    if not faces:
        raise NoFaceInTargetError("No face was found in the target picture")
    if how == "many":
        chosen = list(faces)
    elif how == "one":
        chosen = [_largest(faces)]
    else:
        chosen = [faces[_index(how, "faces", len(faces), NoFaceInTargetError)]]
    usable = [face for face in chosen if side(face.box) >= max(min_face, MEASURABLE)]
    if not usable:
        raise _too_small(_largest(chosen), "target", max(min_face, int(MEASURABLE)))
    return usable


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
        rivals = [face for face in faces if _area(face) ** 0.5 >= _NEAR_EQUAL * _area(chosen) ** 0.5]
        if how == "one" and len(rivals) > 1:
            boxes: list[JsonValue] = [_box(face) for face in faces]
            raise AmbiguousSourceFaceError(
                f"The source shows {len(faces)} faces, {len(rivals)} of them about equally large",
                context={"faces": len(faces), "boxes": boxes},
            )
    if side(chosen.box) < MEASURABLE:
        raise _too_small(chosen, "source", int(MEASURABLE))
    return chosen


def source_warnings(face: FoundFace) -> list[str]:
    """What will weaken the likeness, as stable words: `source_turned` (yaw beyond 35 degrees), `source_small` (below
    80 pixels). Nothing is refused for it: the swap is still right, only weaker."""
    warnings = ["source_turned"] if abs(face.yaw) > _TURNED else []
    return warnings + (["source_small"] if side(face.box) < _SMALL else [])


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

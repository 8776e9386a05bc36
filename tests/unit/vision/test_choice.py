"""Which face is meant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from shared.errors import InvalidOptionError
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
from shared.vision.choice import (
    Usable,
    choose_alike,
    choose_mapped,
    choose_reference,
    choose_source,
    choose_targets,
    ranked,
    source_warnings,
)
from shared.vision.protocols import FoundFace

from .conftest import Portrait

MESH = np.zeros((468, 3), np.float32)


def face(x: float, width: float, height: float | None = None, yaw: float = 0, score: float = 0.9) -> FoundFace:
    box = np.float32([x, 0, x + width, height or width])
    return FoundFace(box=box, score=score, mesh=MESH, yaw=yaw, misfit=0.03)


def test_face_01_no_face_in_the_source() -> None:
    with pytest.raises(NoFaceInSourceError):
        choose_source([], "one")


def test_face_01_no_face_in_the_target() -> None:
    with pytest.raises(NoFaceInTargetError):
        choose_targets([], "many", 20)


def test_face_02_largest_all_or_an_index_from_the_left(portrait: Callable[[str], Portrait]) -> None:
    faces = portrait("three_faces_small_mid_large.jpg").faces
    assert len(faces) == 3
    (largest,) = choose_targets(faces, "one", 20)
    assert largest.box == pytest.approx([445, 69, 549, 206], abs=8)
    assert choose_targets(faces, "many", 20) == faces
    for index, expected in enumerate(faces):
        assert choose_targets(faces, str(index), 20) == [expected]


def test_face_02_both_of_one_person(portrait: Callable[[str], Portrait]) -> None:
    assert len(choose_targets(portrait("same_face_twice.jpg").faces, "many", 20)) == 2


def test_an_index_does_not_depend_on_the_smallest_size() -> None:
    faces = [face(0, 22), face(100, 90)]
    assert choose_targets(faces, "1", 60) == [faces[1]]
    assert choose_targets(faces, "many", 60) == [faces[1]]


@pytest.mark.parametrize("how", ["1", "99", "99999999999999999999"])
def test_an_index_beyond_the_last_face(how: str) -> None:
    with pytest.raises(NoFaceInTargetError) as target:
        choose_targets([face(0, 50)], how, 20)
    assert target.value.context == {"faces": 1}
    with pytest.raises(NoFaceInSourceError):
        choose_source([face(0, 50)], how)


@pytest.mark.parametrize("how", ["", "all", "-1", "1.0", "²", " 1"])
def test_what_is_no_choice(how: str) -> None:
    with pytest.raises(InvalidOptionError) as target:
        choose_targets([face(0, 50)], how, 20)
    assert target.value.context == {"field": "faces"}
    with pytest.raises(InvalidOptionError) as source:
        choose_source([face(0, 50)], how)
    assert source.value.context == {"field": "source_face"}


def test_face_02_an_index_counts_in_the_order_that_is_asked_for() -> None:
    faces = [face(0, 50, score=0.7), face(100, 90, score=0.6), face(200, 50, score=0.9), face(300, 70, score=0.7)]
    assert ranked(faces, "position") == [0, 1, 2, 3]
    assert ranked(faces, "size") == [1, 3, 0, 2]
    assert ranked(faces, "score") == [2, 0, 3, 1]
    for order in ("position", "size", "score"):
        for index, place in enumerate(ranked(faces, order)):
            assert choose_targets(faces, str(index), 20, order=order) == [faces[place]]


def test_face_02_unsure_faces_are_left_out_and_still_counted() -> None:
    faces = [face(0, 90, score=0.4), face(100, 50, score=0.8), face(200, 40, score=0.5)]
    assert choose_targets(faces, "many", 20, min_score=0.5) == faces[1:]
    assert choose_targets(faces, "one", 20, min_score=0.5) == [faces[1]]
    assert choose_targets(faces, "2", 20, min_score=0.5) == [faces[2]]
    for how in ("0", "many", "one"):
        with pytest.raises(NoFaceInTargetError) as caught:
            choose_targets(faces[:1] if how != "0" else faces, how, 20, min_score=0.5)
        assert caught.value.context == {"score": 0.4, "minimum": 0.5}


def test_a_mapping_gives_its_targets_from_left_to_right_each_with_its_source() -> None:
    faces = [face(0, 50), face(100, 90), face(200, 70), face(300, 60)]
    chosen = choose_mapped(faces, (Pairing(1, 3), Pairing(0, 1), Pairing(1, 0)), Usable(20), "position")
    assert (chosen.faces, chosen.sources) == ([faces[0], faces[1], faces[3]], (1, 0, 1))
    by_size = choose_mapped(faces, (Pairing(0, 0), Pairing(1, 1)), Usable(20), "size")
    assert (by_size.faces, by_size.sources) == ([faces[1], faces[2]], (0, 1))


def test_every_face_of_a_mapping_must_be_usable() -> None:
    faces = [face(0, 50), face(100, 30), face(200, 60, score=0.4)]
    for target, error, context in (
        (3, NoFaceInTargetError, {"faces": 3}),
        (1, FaceTooSmallError, {"size": 30.0, "minimum": 40, "box": [100.0, 0.0, 30.0, 30.0]}),
        (2, NoFaceInTargetError, {"score": 0.4, "minimum": 0.5}),
    ):
        with pytest.raises(error) as caught:
            choose_mapped(faces, (Pairing(0, 0), Pairing(0, target)), Usable(40, 0.5), "position")
        assert caught.value.context == context
    with pytest.raises(NoFaceInTargetError):
        choose_mapped([], (Pairing(0, 0),), Usable(40), "position")


def test_face_02_the_reference_s_face_by_cosine() -> None:
    """Vectors of any length; the angles to the reference are 0, 60 and 90 degrees."""
    faces = [face(0, 50), face(100, 50), face(200, 50)]
    vectors = np.float32([[3, 0], [1, 3**0.5], [0, 0.1]])
    reference = np.float32([0.2, 0])
    assert choose_alike(faces, vectors, reference, 0.51) == faces[:1]
    assert choose_alike(faces, vectors, reference, 0.49) == faces[:2]
    assert choose_alike(faces, vectors, reference, 0.0) == faces
    with pytest.raises(NoMatchingFaceError) as caught:
        choose_alike(faces[1:], vectors[1:], reference, 0.6)
    assert caught.value.context == {"similarity": 0.5, "minimum": 0.6}
    assert choose_alike(faces, np.zeros((3, 2), np.float32), reference, 0.0) == faces


def test_face_02_the_reference_is_one_face(portrait: Callable[[str], Portrait]) -> None:
    with pytest.raises(NoFaceInReferenceError):
        choose_reference([])
    with pytest.raises(AmbiguousReferenceFaceError) as caught:
        choose_reference(portrait("source_two_faces.jpg").faces)
    assert caught.value.context["faces"] == 2
    with pytest.raises(FaceTooSmallError):
        choose_reference([face(0, 17)])
    small, large = face(0, 40), face(100, 100)
    assert choose_reference([small, large]) is large


def test_face_03_two_equal_sources_are_a_question(portrait: Callable[[str], Portrait]) -> None:
    with pytest.raises(AmbiguousSourceFaceError) as caught:
        choose_source(portrait("source_two_faces.jpg").faces, "one")
    context = caught.value.context
    assert context["faces"] == 2
    boxes = context["boxes"]
    assert isinstance(boxes, list)
    assert [pytest.approx(box, abs=8) for box in boxes] == [[37, 48, 96, 117], [279, 52, 91, 114]]


def test_face_03_an_index_or_largest_is_an_answer(portrait: Callable[[str], Portrait]) -> None:
    faces = portrait("source_two_faces.jpg").faces
    assert choose_source(faces, "1") is faces[1]
    assert choose_source(faces, "largest") is faces[0]


def test_a_group_is_a_question_and_a_portrait_before_others_is_not(portrait: Callable[[str], Portrait]) -> None:
    with pytest.raises(AmbiguousSourceFaceError):
        choose_source(portrait("t1").faces, "one")
    faces = [face(0, 40), face(100, 100), face(300, 60)]
    assert choose_source(faces, "one") is faces[1]


def test_face_07_a_tiny_target_is_too_small_with_its_size(portrait: Callable[[str], Portrait]) -> None:
    with pytest.raises(FaceTooSmallError) as caught:
        choose_targets(portrait("tiny_face_17px.jpg").faces, "many", 20)
    assert caught.value.status == 422
    size = caught.value.context["size"]
    assert isinstance(size, float)
    assert 8 < size < 18
    assert caught.value.context["minimum"] == 20


def test_face_07_the_smallest_side_is_the_callers_choice() -> None:
    faces = [face(0, 60, 80), face(100, 90, 100)]
    assert choose_targets(faces, "many", 60) == faces
    assert choose_targets(faces, "many", 61) == faces[1:]
    with pytest.raises(FaceTooSmallError) as caught:
        choose_targets(faces, "many", 91)
    assert caught.value.context == {"size": 90.0, "minimum": 91, "box": [100.0, 0.0, 90.0, 100.0]}


def test_a_face_no_mesh_fits_is_never_swapped_nor_a_source() -> None:
    with pytest.raises(FaceTooSmallError) as caught:
        choose_targets([face(0, 17)], "many", 1)
    assert caught.value.context["minimum"] == 18
    with pytest.raises(FaceTooSmallError):
        choose_source([face(0, 17)], "one")


def test_weak_sources_are_used_with_a_warning(portrait: Callable[[str], Portrait]) -> None:
    assert source_warnings(portrait("astronaut").faces[0]) == []
    assert source_warnings(face(0, 79)) == ["source_small"]
    assert source_warnings(face(0, 200, yaw=-36)) == ["source_turned"]
    assert source_warnings(portrait("t1").faces[4]) == ["source_turned"]

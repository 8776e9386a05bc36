"""Which face is meant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from shared.errors import (
    AmbiguousSourceFaceError,
    FaceTooSmallError,
    InvalidOptionError,
    NoFaceInSourceError,
    NoFaceInTargetError,
)
from shared.vision.choice import choose_source, choose_targets, source_warnings
from shared.vision.protocols import FoundFace

from .conftest import Portrait

MESH = np.zeros((468, 3), np.float32)


def face(x: float, width: float, height: float | None = None, yaw: float = 0) -> FoundFace:
    box = np.float32([x, 0, x + width, height or width])
    return FoundFace(box=box, score=0.9, mesh=MESH, yaw=yaw, misfit=0.03)


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

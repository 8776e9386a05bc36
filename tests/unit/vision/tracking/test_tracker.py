"""Faces followed through a clip: none lost, none mixed up, none that is none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from shared.imaging.canvas import Still
from shared.vision.protocols import FoundFace, Image, SparseLandmarks
from shared.vision.tracking.casting import Known
from shared.vision.tracking.flow import patch
from shared.vision.tracking.looks import Nearby
from shared.vision.tracking.pursuit import Pursuit, Seen
from shared.vision.tracking.trail import Pace

from .world import Eyes, Memory, Scene, Touch, Where, chosen, draw, mesh_at, swapped, vector_of, watch


def one(index: int) -> Where:
    """One person who walks to the right."""
    return {0: (100 + 3 * index, 120, 60)}


def near(a: tuple[float, float], b: tuple[float, float], limit: float = 3) -> bool:
    return float(np.hypot(a[0] - b[0], a[1] - b[1])) < limit


def test_the_detector_looks_at_every_fifth_frame_and_the_mesh_at_each() -> None:
    eyes, touch = Eyes(), Touch()
    found = swapped(chosen(watch(one, 40, eyes=eyes, touch=touch)))
    assert all(near(found[i][0], (100 + 3 * i, 120)) and len(found[i]) == 1 for i in range(40))
    assert eyes.calls <= 2 + 40 // 5  # the first frame is searched as a picture is
    assert 40 <= touch.calls <= 50


def test_the_mesh_does_not_lag_behind_a_face_that_turns_back() -> None:
    def scene(index: int) -> Where:
        return {0: (240 + 60 * float(np.sin(index / 5)), 120, 60)}

    found = swapped(chosen(watch(scene, 60)))
    errors = [found[i][0][0] - scene(i)[0][0] for i in range(60)]
    assert np.abs(errors).max() < 1.0  # squares are drawn on whole pixels
    assert abs(float(np.mean(errors))) < 0.3


@pytest.mark.parametrize("length", [1, 2, 4])
def test_vid_12_a_face_missed_for_a_moment_never_flashes(length: int) -> None:
    missed = set(range(12, 12 + length))
    found = swapped(chosen(watch(one, 30, touch=Touch(missed=missed))))
    assert all(near(found[i][0], (100 + 3 * i, 120)) for i in range(30))


def test_vid_12_a_face_that_is_gone_is_not_painted() -> None:
    def scene(index: int) -> Where:
        return {} if 10 <= index < 20 else {0: (200, 120, 60)}

    tracks = chosen(watch(scene, 30))
    found = swapped(tracks)
    assert [index for index in range(30) if not found[index]] == list(range(10, 20))


def test_what_hides_a_face_for_a_moment_is_not_painted_over() -> None:
    def scene(index: int) -> Where:
        return {0: (200, 120, 60)} | ({3: (200, 120, 110)} if index in (12, 13) else {})

    class Nobody(Eyes):
        """The hand is no face."""

        def detect(self, image, **kwargs):  # type: ignore[no-untyped-def]
            return [d for d in super().detect(image, **kwargs) if d.box[2] - d.box[0] < 100]

    touch = Touch(missed={12, 13})
    found = swapped(chosen(watch(scene, 30, eyes=Nobody(), touch=touch)))
    assert [index for index in range(30) if not found[index]] == [12, 13]


def test_a_face_fades_in_and_out_but_not_at_the_clips_ends() -> None:
    def scene(index: int) -> Where:
        return {0: (100, 120, 60)} | ({1: (300, 120, 60)} if 10 <= index < 25 else {})

    tracks = chosen(watch(scene, 40))
    always, sometimes = (int(track) for track in np.argsort(np.bincount(tracks.track))[::-1])
    assert (tracks.strengths[tracks.track == always] == 1).all()
    strengths = tracks.strengths[tracks.track == sometimes]
    assert len(strengths) == 15
    assert (strengths > 0).all()
    assert list(np.nonzero(strengths < 1)[0]) == [0, 1, 2, 12, 13, 14]
    assert (np.diff(strengths[:4]) > 0).all()


def test_a_new_face_is_followed_back_to_its_first_frame() -> None:
    """The detector comes by at frame 15; the face has been there since 11."""

    def scene(index: int) -> Where:
        return {0: (100, 120, 60)} | ({1: (300 - index, 120, 60)} if index >= 11 else {})

    found = swapped(chosen(watch(scene, 30)))
    assert [len(found[i]) for i in range(9, 14)] == [1, 1, 2, 2, 2]


def test_vid_12_a_cut_ends_all_tracks_at_once() -> None:
    def scene(index: int) -> Where:
        return {0: (120, 120, 60)} if index < 12 else {1: (125, 122, 60)}

    tracks = chosen(watch(scene, 24, cuts=[12]))
    assert tracks.cuts.tolist() == [12]
    assert (tracks.strengths == 1).all()
    assert {int(t) for t in tracks.track[tracks.frame < 12]}.isdisjoint(tracks.track[tracks.frame >= 12].tolist())
    assert all(len(faces) == 1 for faces in swapped(tracks).values())


def test_what_only_the_detector_sees_is_no_face() -> None:
    assert not any(swapped(chosen(watch(lambda _: {}, 20, eyes=Eyes(ghosts=[(200, 100)])))).values())


def test_what_only_the_mesh_sees_is_given_up() -> None:
    """The detector sees the face once; afterwards it is a picture on a wall to it."""
    eyes = Eyes(blind=lambda call: call > 1)
    found = swapped(chosen(watch(one, 40, eyes=eyes)))
    assert found[0]
    assert not any(found[index] for index in range(16, 40))


def crossing(front: int, speed: float) -> Scene:
    """Two people walk through each other; the one in front hides the other."""
    back = 1 - front

    def scene(index: int) -> Where:
        x = speed * index
        where = {0: (70 + x, 120.0, 64.0), 1: (410 - x, 128.0, 64.0)}
        return {back: where[back], front: where[front]}

    return scene


@pytest.mark.parametrize("speed", [5.0, 15.0])
@pytest.mark.parametrize("front", [0, 1])
@pytest.mark.parametrize("meant", [0, 1])
def test_vid_12_people_who_cross_keep_their_faces(front: int, meant: int, speed: float) -> None:
    """`faces: reference`: the person meant is swapped wherever it is seen, the other never."""
    frames, scene = int(340 / speed), crossing(front, speed)
    cast = watch(scene, frames, memory=Memory())
    found = swapped(chosen(cast, Known(reference=vector_of(meant)), faces="reference"))
    for index in range(frames):
        where = scene(index)
        here, other = where[meant], where[1 - meant]
        apart = abs(here[0] - other[0])
        assert len(found[index]) <= 1
        if found[index]:
            assert near(found[index][0], here[:2], 12), index
        if apart > 45 or meant == front:
            assert found[index], index


@pytest.mark.parametrize("front", [0, 1])
def test_people_who_cross_are_told_apart_by_their_looks_without_a_recogniser(front: int) -> None:
    scene = crossing(front, 6.0)
    tracks = chosen(watch(scene, 56), faces="0")
    found = swapped(tracks)
    for index in range(56):
        if found[index]:
            assert near(found[index][0], scene(index)[0][:2], 12), index
    assert sum(bool(faces) for faces in found.values()) > 40


def test_a_recogniser_is_asked_seldom() -> None:
    memory = Memory()
    watch(one, 100, memory=memory)
    assert memory.calls <= 5


def test_someone_else_in_the_same_place_is_someone_else_though_no_cut_was_told() -> None:
    def scene(index: int) -> Where:
        return {0: (200, 120, 60)} if index < 20 else {1: (200, 120, 60)}

    cast = watch(scene, 40, memory=Memory())
    found = swapped(chosen(cast, Known(reference=vector_of(0)), faces="reference"))
    assert [index for index in range(40) if found[index]] == list(range(20))


class Finer:
    """Refiner that only says what it was shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[int, ...]] = []

    def warm(self) -> None: ...

    def refine(self, image: Image, faces: Sequence[FoundFace]) -> list[SparseLandmarks]:
        self.shown.append(image.shape)
        return [SparseLandmarks(np.zeros((68, 2), np.float32), 0.0) for _ in faces]


@pytest.mark.parametrize(("x", "asked"), [(-400, 0), (200, 1)])
def test_what_lies_outside_of_the_frame_is_shown_to_no_further_model(x: float, asked: int) -> None:
    look, mesh, finer, memory = Still(draw({0: (200, 120, 60)})), mesh_at(x, 120, 60), Finer(), Memory()
    face = FoundFace(np.array([x - 30, 90, x + 30, 150], np.float32), 0.9, mesh, 0.0, 0.03)
    pursuit = Pursuit(0, Seen(face, Nearby(look, mesh), patch(look, mesh), mesh, None))
    pursuit.refine(finer)
    pursuit.vector(memory, 1)
    assert (len(finer.shown), memory.calls) == (asked, asked)


def test_a_clip_without_a_face() -> None:
    tracks = chosen(watch(lambda _: {}, 10))
    assert len(tracks.meshes) == 0
    assert len(tracks.pts) == 10


def test_every_frame_may_be_detected() -> None:
    found = swapped(chosen(watch(one, 12, pace=Pace(every=1))))
    assert all(len(faces) == 1 for faces in found.values())

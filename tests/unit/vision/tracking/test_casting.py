"""Who is meant: in one part of a video and in those that follow."""

from __future__ import annotations

from functools import cache

import pytest

from shared.errors import InvalidOptionError
from shared.events.choices import Options, Pairing, by_who
from shared.rejections import NoFaceInReferenceError
from shared.vision.tracking.casting import Known, choose
from shared.vision.tracking.finishing import Cast
from shared.vision.tracking.tracks import NOBODY

from .world import Memory, Where, vector_of, watch


def room(index: int) -> Where:
    """Three people, the middle one largest; in the second scene two of them, the other way round."""
    if index < 10:
        return {0: (80, 120, 50), 1: (220, 120, 90), 2: (360, 120, 60)}
    return {2: (100, 120, 60), 0: (300, 120, 80)}


@cache
def seen(*, recogniser: bool) -> Cast:
    return watch(room, 20, cuts=[10], memory=Memory() if recogniser else None)


def who(cast: Cast, known: Known | None = None, **options: object) -> dict[int, list[tuple[int, int]]]:
    """For each scene the swapped faces: their places from left to right and their sources."""
    tracks, _ = choose(cast, Options(**options), known or Known())  # type: ignore[arg-type]
    found = {}
    for scene, pts in ((0, 50), (1, 150)):
        places = sorted(tracks.at(pts), key=lambda place: float(place.box[0]))
        found[scene] = [(k, place.source) for k, place in enumerate(places) if place.source != NOBODY]
    return found


@pytest.mark.parametrize("recogniser", [True, False])
def test_many(recogniser: bool) -> None:
    assert who(seen(recogniser=recogniser)) == {0: [(0, 0), (1, 0), (2, 0)], 1: [(0, 0), (1, 0)]}


def test_with_a_recogniser_people_are_followed_through_cuts() -> None:
    cast = seen(recogniser=True)
    assert who(cast, faces="0") == {0: [(0, 0)], 1: [(1, 0)]}
    assert who(cast, faces="2") == {0: [(2, 0)], 1: [(0, 0)]}
    assert who(cast, faces="0", order="size") == {0: [(1, 0)], 1: []}
    assert who(cast, faces="one") == {0: [(0, 0)], 1: [(1, 0)]}  # person 0 is there for longer


def test_without_one_the_order_counts_in_each_scene() -> None:
    cast = seen(recogniser=False)
    assert who(cast, faces="0") == {0: [(0, 0)], 1: [(0, 0)]}
    assert who(cast, faces="2") == {0: [(2, 0)], 1: []}
    assert who(cast, faces="one") == {0: [(1, 0)], 1: [(1, 0)]}


def test_a_mapping() -> None:
    mapping = (Pairing(source=1, target=0), Pairing(source=0, target=2))
    assert who(seen(recogniser=True), mapping=mapping) == {0: [(0, 1), (2, 0)], 1: [(0, 0), (1, 1)]}
    assert who(seen(recogniser=False), mapping=mapping) == {0: [(0, 1), (2, 0)], 1: []}


def test_a_reference_means_one_person_everywhere() -> None:
    cast = seen(recogniser=True)
    assert who(cast, Known(reference=vector_of(0)), faces="reference") == {0: [(0, 0)], 1: [(1, 0)]}
    assert who(cast, Known(reference=vector_of(7)), faces="reference") == {0: [], 1: []}
    with pytest.raises(NoFaceInReferenceError):
        who(cast, faces="reference")


@pytest.mark.parametrize("options", [{"faces": "0"}, {"mapping": (Pairing(source=1, target=0),)}])
def test_later_parts_know_people_by_the_gallery(options: dict[str, object]) -> None:
    first = watch(lambda _: {0: (100, 120, 50), 1: (300, 120, 60)}, 8, memory=Memory())
    asked = Options(**options)  # type: ignore[arg-type]
    _, people = choose(first, asked, Known())
    assert people is not None
    later = watch(lambda _: {1: (100, 120, 60), 0: (300, 120, 50)}, 8, memory=Memory())
    tracks, again = choose(later, asked, Known(gallery=people))
    assert again is people
    (place,) = tracks.to_swap(40)
    assert abs(float(place.box[0]) - 275) < 3
    assert place.source == (1 if "mapping" in options else 0)


def test_a_part_that_does_not_show_who_is_meant_introduces_nobody() -> None:
    alone = watch(lambda _: {0: (100, 120, 50)}, 6, memory=Memory())
    tracks, people = choose(alone, Options(faces="1"), Known())
    assert people is None
    assert not tracks.to_swap(20)
    empty = watch(lambda _: {}, 6, memory=Memory())
    assert choose(empty, Options(faces="0"), Known())[1] is None


def test_small_and_unsure_faces_are_counted_and_left() -> None:
    cast = seen(recogniser=True)
    assert who(cast, min_face=55) == {0: [(1, 0), (2, 0)], 1: [(0, 0), (1, 0)]}  # person 0 is larger later
    assert who(cast, min_score=0.95) == {0: [], 1: []}
    assert who(cast, faces="1", min_face=70) == {0: [(1, 0)], 1: []}


def test_which_jobs_mean_single_people() -> None:
    assert by_who(Options(faces="one"))
    assert by_who(Options(faces="3"))
    assert by_who(Options(mapping=(Pairing(0, 0),)))
    assert not by_who(Options())
    assert not by_who(Options(faces="reference"))


def test_a_word_that_means_nothing() -> None:
    with pytest.raises(InvalidOptionError):
        who(seen(recogniser=True), faces="left")

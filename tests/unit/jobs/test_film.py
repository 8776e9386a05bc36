"""However a video's segments come in, each is asked for, never too many at once, and one event joins them."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from shared.errors import BusyError
from shared.jobs.film import Film, asked_first, closed_plan, follow, open_plan
from shared.storage.local import LocalStore
from tests.unit.jobs.film import JOB, clip, plan


@pytest.fixture
def film(tmp_path: Path) -> Film:
    return Film(LocalStore(tmp_path), "demo", JOB)


def test_a_plan_is_read_as_it_was_written() -> None:
    assert open_plan(closed_plan(plan(3, alone=True))) == plan(3, alone=True)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("first", [None, 0, 2, 6])
@pytest.mark.parametrize(("parts", "window"), [(1, 4), (3, 4), (7, 1), (7, 3), (20, 4)])
def test_every_segment_is_asked_for_by_one_other(parts: int, window: int, first: int | None, alone: bool) -> None:
    made = plan(parts, window, alone=alone)
    asked = [*asked_first(made), *(one for index in range(parts) for one in follow(made, index, first))]
    assert sorted(asked) == list(range(parts))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("alone", [False, True])
def test_any_order_with_repeats_leads_to_one_joining_and_keeps_the_window(film: Film, seed: int, alone: bool) -> None:
    chance, made = random.Random(seed), plan(11, 3, alone=alone)
    waiting, joined, most = [*asked_first(made)], list[int](), 0
    finished: list[int] = []
    while waiting:
        most = max(most, len(waiting))
        index = waiting.pop(chance.randrange(len(waiting)))
        finished.append(index)
        for again in [index, *chance.sample(finished, min(len(finished), 2))]:
            wanted = film.take(made, clip(again, swapped=int(again >= 2)), f"cause-{again}")
            if wanted is None:
                joined.append(again)
            waiting += [one for one in wanted or () if one not in finished and one not in waiting]
    assert set(finished) == set(range(11))
    assert set(joined) == {finished[-1]}, "the last one, also when it is delivered again"
    assert most <= 3


def test_of_two_last_events_at_once_one_joins(film: Film) -> None:
    made = plan(8, 8)
    for index in range(6):
        film.take(made, clip(index), f"cause-{index}")
    start = Barrier(2)

    def last(index: int) -> bool:
        start.wait(30)
        return film.take(made, clip(index), f"cause-{index}") is None

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(last, (6, 7))) == [False, True]


def test_a_repeat_of_whoever_joins_joins_and_no_other_event_of_its_segment(film: Film) -> None:
    made = plan(2)
    assert film.take(made, clip(1), "a") == []
    assert film.take(made, clip(0), "b") is None
    assert film.take(made, clip(0), "b") is None
    assert film.take(made, clip(0), "another event of the same segment") == []
    assert film.take(made, clip(1), "a") == []


def test_the_first_clip_of_a_segment_counts(film: Film) -> None:
    film.take(plan(3), clip(1, swapped=4), "a")
    film.take(plan(3), clip(1, swapped=5), "b")
    assert film.read(1).frames_swapped == 4
    assert film.done() == {1}


def test_lost_clips_are_asked_for_again_and_their_last_one_joins(film: Film) -> None:
    made = plan(4)
    for index in (0, 1, 2):
        film.take(made, clip(index), f"cause-{index}")
    assert film.take(made, clip(3), "joins") is None
    film.lose([0, 2])
    assert film.take(made, clip(3), "joins") == [0, 2], "a crash came before they were asked for"
    assert film.take(made, clip(2), "again-2") == []
    assert film.take(made, clip(0), "again-0") is None
    assert film.take(made, clip(2), "again-2") == []
    assert film.take(made, clip(3), "joins") == []


def test_only_who_has_the_claim_gives_clips_up(film: Film) -> None:
    made = plan(1)
    assert film.take(made, clip(0), "joins") is None
    stale = Film(Behind(film.store, film), film.tenant, film.job)  # type: ignore[arg-type]
    with pytest.raises(BusyError):
        stale.lose([0])
    assert film.done() == {0}


class Behind:
    """A store in which another passes the claim on between a look and the writing."""

    def __init__(self, store: object, film: Film) -> None:
        self._store, self._film = store, film

    def __getattr__(self, name: str) -> object:
        if name == "replace":
            self._film.pass_on(0)
        return getattr(self._store, name)


def test_what_is_under_way_was_asked_for_and_is_not_done(film: Film) -> None:
    made = plan(9, 3)
    assert film.under_way(made, film.done()) == [0, 1, 2]
    film.take(made, clip(1), "a")
    assert film.under_way(made, film.done()) == [0, 2, 4]


def test_until_somebody_is_seen_segments_go_one_by_one(film: Film) -> None:
    made = plan(9, 3, alone=True)
    assert [*asked_first(made)] == [0]
    assert film.take(made, clip(0, swapped=0), "0") == [1]
    assert film.under_way(made, film.done()) == [1]
    assert film.take(made, clip(1, swapped=2), "1") == [2, 3, 4]
    assert film.take(made, clip(3, swapped=0), "3") == [6]
    assert film.under_way(made, film.done()) == [2, 4, 6]

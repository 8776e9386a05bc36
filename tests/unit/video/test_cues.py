"""Subtitles that overlap, where one text is shown at a time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from shared.video.cues import Cue, Cues


def shown(*lines: tuple[int, int, str]) -> list[tuple[int, int, str]]:
    cues = Cues()
    found = [text for start, end, words in lines for text in cues.take(Cue(start, end, words.encode()))]
    return [(text.start, text.end, text.words.decode()) for text in [*found, *cues.rest()]]


def test_lines_one_after_the_other_stay_as_they_are() -> None:
    lines = [(0, 300, "a"), (300, 500, "b"), (900, 1000, "c")]
    assert shown(*lines) == lines


def test_lines_at_once_are_one_text_and_each_keeps_its_times() -> None:
    assert shown((200, 900, "a"), (600, 1400, "b")) == [(200, 600, "a"), (600, 900, "a\nb"), (900, 1400, "b")]
    assert shown((0, 100, "a"), (0, 100, "b")) == [(0, 100, "a\nb")]
    assert shown((0, 900, "a"), (100, 200, "b"), (300, 400, "c")) == [
        *((0, 100, "a"), (100, 200, "a\nb"), (200, 300, "a")),
        *((300, 400, "a\nc"), (400, 900, "a")),
    ]


def test_a_line_without_a_length_is_shown_until_the_next() -> None:
    assert shown((0, 0, "a"), (400, 500, "b")) == [(0, 400, "a"), (400, 500, "b")]
    assert shown((-90, 0, "a"), (-50, -40, "b")) == [(-90, -50, "a"), (-50, -40, "a\nb"), (-40, 0, "a")]
    assert shown((0, 100, "a"), (50, 50, "b")) == [(0, 50, "a"), (50, 100, "a\nb")]
    assert shown((0, 0, "a")) == [(0, 0, "a")]


def test_a_line_that_comes_too_late_begins_where_the_last_text_ended() -> None:
    assert shown((500, 600, "a"), (100, 700, "b")) == [(500, 600, "a\nb"), (600, 700, "b")]
    assert shown((500, 600, "a"), (900, 950, "b"), (100, 200, "c")) == [(500, 600, "a"), (900, 950, "b\nc")]


def test_without_words_nothing_is_shown() -> None:
    assert shown((0, 100, ""), (50, 60, "a"), (55, 80, "")) == [(50, 55, "a"), (55, 60, "a")]
    assert shown() == []


@pytest.mark.parametrize("count", [100, 3000])
def test_lines_without_end_are_bounded(count: int) -> None:
    found = shown(*((number, 10**6, "x" * 3000) for number in range(count)))
    assert max(len(words) for *_, words in found) <= 65535
    assert [start for start, *_ in found] == sorted(start for start, *_ in found)
    assert all(end <= after for (_, end, _), (after, _, _) in pairwise(found))

"""Which banned words stand in a text: bounds, cases, digits for letters, letters spread out, scripts without spaces."""

from __future__ import annotations

import pytest

from shared.tenancy.words import Found, find


def hit(text: str, word: str) -> bool:
    return bool(find(text.split("\n"), [word]))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("very BAD indeed", "bad"),
        ("bad", "BAD"),
        ("bad!", "bad"),
        ("(bad)", "bad"),
        ("STRASSE", "straße"),
        ("\ufb01lth", "filth"),  # a ligature
        ("\uff42\uff41\uff44", "bad"),  # full width
        ("ИДИОТ", "идиот"),
        ("b4d", "bad"),
        ("he11o he110", "hello"),
        ("F00L", "fool"),
        ("b.a.d", "bad"),
        ("b-a-d", "bad"),
        ("ba.d", "bad"),
        ("b_a_d", "bad"),
        ("b a d", "bad"),
        ("b . a . d", "bad"),
        ("two words", "two words"),
        ("two\nwords", "two words"),
        ("two-words", "two words"),
        ("twowords", "two words"),
        ("这是坏话吗", "坏话"),
        ("ひどい悪口だ", "悪口"),
        ("call 88 now", "88"),
    ],
)
def test_found(text: str, word: str) -> None:
    assert hit(text, word)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("class", "ass"),
        ("assets", "ass"),
        ("pass", "ass"),
        ("ba d", "bad"),
        ("b\na\nd", "bad"),
        ("bd", "bad"),
        ("14 la", "88"),
        ("la", "14"),  # a banned digit means itself
        ("1488", "88"),
        ("as so", "asso"),
        ("...", "..."),  # no letter: would stand everywhere
        ("", "bad"),
    ],
)
def test_not_found(text: str, word: str) -> None:
    assert not hit(text, word)


def test_says_which_word_and_on_which_lines() -> None:
    lines = ["one good line", "two bad", "words here, bad"]
    assert find(lines, ["bad words", "bad", "worse"]) == [Found(0, (1, 2)), Found(1, (1,)), Found(1, (2,))]


def test_a_word_that_looks_like_a_pattern_is_text() -> None:
    assert hit("a+b", "a+b")
    assert not hit("aab", "a+b")
    assert hit("see c++", "c++")


def test_a_long_text_and_a_long_list_take_no_time() -> None:
    """Nothing here grows faster than text times list: no pattern goes back over what it has read."""
    assert find(["a." * 20_000 + "!"], ["a" * 100 + "b", "a b c d e f"]) == []

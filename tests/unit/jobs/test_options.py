"""Every option, at its bounds and beyond."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import InvalidOptionError, JsonValue
from shared.events.payloads import Options
from shared.jobs import options

GOOD: list[tuple[str, JsonValue, object]] = [
    ("swapper", "inswapper_128", "inswapper_128"),
    ("faces", "one", "one"),
    ("faces", 0, "0"),
    ("faces", "12", "12"),
    ("source_face", "largest", "largest"),
    ("source_face", 3, "3"),
    ("eyes", "source", "source"),
    ("shape", 0, 0.0),
    ("shape", 1.0, 1.0),
    ("min_face", 18, 18),
    ("min_face", 4096, 4096),
    ("format", "avif", "avif"),
    ("quality", 1, 1),
    ("quality", 100, 100),
]
BAD: list[tuple[str, JsonValue]] = [
    ("swapper", "../mesh"),
    ("swapper", ""),
    ("swapper", 1),
    ("faces", "largest"),
    ("faces", -1),
    ("faces", 1000),
    ("faces", True),
    ("faces", "1000"),
    ("faces", "٣"),
    ("source_face", "many"),
    ("source_face", None),
    ("eyes", "both"),
    ("shape", -0.01),
    ("shape", 1.01),
    ("shape", "0.5"),
    ("shape", float("nan")),
    ("min_face", 17),
    ("min_face", 4097),
    ("min_face", 20.0),
    ("format", "heic"),
    ("format", ["jpeg"]),
    ("quality", 0),
    ("quality", 101),
    ("quality", True),
]


def test_defaults() -> None:
    assert options.parse({}) == Options()


@pytest.mark.parametrize(("name", "value", "kept"), GOOD)
def test_allowed(name: str, value: JsonValue, kept: object) -> None:
    found = getattr(options.parse({name: value}), name)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize(("name", "value"), BAD)
def test_refused_by_name(name: str, value: JsonValue) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        options.parse({name: value})
    assert caught.value.context == {"field": name}


def test_every_field_has_a_good_and_a_bad_case() -> None:
    names = {entry.name for entry in fields(Options)}
    assert names == {name for name, *_ in GOOD} == {name for name, _ in BAD}


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_options_are_an_object(value: JsonValue) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        options.parse(value)
    assert caught.value.context == {"field": "options"}


def test_unknown_option() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        options.parse({"qualty": 1})
    assert caught.value.context == {"field": "qualty"}


@given(st.sampled_from([entry.name for entry in fields(Options)]), st.integers() | st.floats() | st.text() | st.none())
def test_nothing_but_our_own_error(name: str, value: JsonValue) -> None:
    with suppress(InvalidOptionError):
        assert isinstance(options.parse({name: value}), Options)

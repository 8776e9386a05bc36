"""JSON and records: strict in what is read, exact in what is written."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import JsonValue
from shared.records import MAX_DEPTH, RecordError, dumps, loads, read, write


@dataclass(frozen=True)
class Inner:
    name: str
    ratio: float = 1.0


@dataclass(frozen=True)
class Outer:
    inner: Inner
    many: tuple[Inner, ...] = ()
    maybe: int | None = None
    flag: bool = False
    pair: tuple[int, str] = (0, "")
    free: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True)
class Wrong:
    raw: bytes | str


@given(
    st.builds(
        Outer,
        st.builds(
            Inner, st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False, allow_infinity=False)
        ),
    )
)
def test_what_is_written_is_read_again(record: Outer) -> None:
    assert read(Outer, loads(dumps(write(record)))) == record


def test_whole_numbers_are_numbers_but_not_the_other_way() -> None:
    inner = read(Inner, {"name": "x", "ratio": 2})
    assert (inner.ratio, type(inner.ratio)) == (2.0, float)
    with pytest.raises(RecordError, match="maybe is not a whole number"):
        read(Outer, {"inner": {"name": "x"}, "maybe": 2.0})


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([], "at"),
        ({}, "at.inner"),
        ({"inner": {}}, "at.inner.name"),
        ({"inner": {"name": 1}}, "at.inner.name"),
        ({"inner": {"name": "x"}, "many": [{"name": "y"}, 5]}, "at.many[1]"),
        ({"inner": {"name": "x"}, "flag": 1}, "at.flag"),
        ({"inner": {"name": "x"}, "pair": [1]}, "at.pair"),
        ({"inner": {"name": "x"}, "pair": [1, "a", 2]}, "at.pair"),
        ({"inner": {"name": "x"}, "pair": [1, 2]}, "at.pair[1]"),
        ({"inner": {"name": "x"}, "free": []}, "at.free"),
        ({"inner": {"name": "x", "ratio": True}}, "at.inner.ratio"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(value: JsonValue, path: str) -> None:
    with pytest.raises(RecordError) as caught:
        read(Outer, value, "at")
    assert caught.value.path == path


def test_a_record_of_other_types_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="raw"):
        read(Wrong, {"raw": "x"})
    with pytest.raises(TypeError, match="bytes"):
        write(Wrong(b"x"))


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", '{"a": 1, "a": 1}', "", "{", b"\xff", "[" * 100_000])
def test_json_that_is_none_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own texts
        loads(text)


def test_depth_is_limited_on_the_dot() -> None:
    assert loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(ValueError, match="nested"):
        loads('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1))


def test_equal_values_give_equal_bytes() -> None:
    assert (
        dumps({"b": 1, "a": [True, None, "é"]})
        == dumps({"a": [True, None, "é"], "b": 1})
        == b'{"a":[true,null,"\\u00e9"],"b":1}'
    )
    with pytest.raises(ValueError, match="JSON"):
        dumps(float("nan"))

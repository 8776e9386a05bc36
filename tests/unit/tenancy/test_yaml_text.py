"""A tenant's file is read as JSON would be, whatever YAML could say besides."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ConfigError
from shared.tenancy.yaml_text import loads

TEXT = st.text(st.characters(exclude_categories=("C", "Z")), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**15), 10**15) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)


@given(VALUES)
def test_what_json_writes_is_read_as_it_was(value: Any) -> None:
    if depth(value) <= 8:
        assert loads(json.dumps(value, ensure_ascii=False)) == value


@given(VALUES)
def test_what_yaml_writes_is_read_as_it_was(value: Any) -> None:
    if depth(value) <= 8:
        assert loads(yaml.safe_dump(value, allow_unicode=True)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: no", {"a": "no"}),
        ("a: 2030-01-31", {"a": "2030-01-31"}),
        ("a: 12:30:00", {"a": "12:30:00"}),
        ("a: 0o17", {"a": "0o17"}),
        ("a: 017", {"a": "017"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: .inf", {"a": ".inf"}),
        ("a: 1e999", {"a": "1e999"}),
        ("a: '1'", {"a": "1"}),
        ("a: 0.5", {"a": 0.5}),
        ("a: 1.0e3", {"a": 1000.0}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("<<: {a: 1}", {"<<": {"a": 1}}),
        ("# only a comment", None),
        ("", None),
    ],
)
def test_words_without_quotes(text: str, value: Any) -> None:
    assert loads(text) == value


@pytest.mark.parametrize(
    ("text", "field", "detail"),
    [
        ("a: 1\nb: {c: 1, c: 2}", "b.c", "Stands twice (line 2)"),
        ("a: 1\na: 1", "a", "Stands twice (line 2)"),
        ("a: [1, {b: 1, b: 2}]", "a[1].b", "Stands twice (line 1)"),
        ("a: &x [1]\nb: *x", "a", "Anchors and aliases are not read (line 1)"),
        ("a: !!python/object/apply:os.system [id]", "a", "Tags are not read (line 1)"),
        ("a: !!binary aGk=", "a", "Tags are not read (line 1)"),
        ("? [a]\n: b", "file", "A name must be a text (line 1)"),
        ("a: 1\n---\nb: 2", "file", "Holds more than one document (line 2)"),
        ("a: " + "[" * 12 + "]" * 12, "a" + "[0]" * 8, "Nested deeper than 8 (line 1)"),
        ("a: " + "[" * 200_000, "file", "Not valid YAML: line 1: exceeded maximum nesting depth"),
        ("a: [1", "file", "Not valid YAML: line 2"),
        ("a: \x07", "file", "Not valid YAML: a character that may not stand in it."),
        ("a: b: c", "file", "Not valid YAML: line 1"),
    ],
)
def test_what_is_not_read_is_named(text: str, field: str, detail: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(text)
    assert caught.value.context == {"field": field}
    assert detail in caught.value.detail

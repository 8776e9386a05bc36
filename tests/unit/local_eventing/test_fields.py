"""Strict reading: full paths in every refusal."""

import pytest

from infra.local.eventing.duration import parse_duration
from infra.local.fields import (
    ManifestError,
    as_mapping,
    integer_at,
    list_at,
    mapping_at,
    refuse_unknown,
    required_text,
    text_at,
    text_mapping_at,
)


def test_refuse_unknown_names_the_full_path() -> None:
    with pytest.raises(ManifestError) as caught:
        refuse_unknown({"retry": 1, "retryAfterMax": "PT1S"}, {"retry"}, "spec.delivery")
    assert caught.value.field == "spec.delivery.retryAfterMax"
    assert str(caught.value) == "spec.delivery.retryAfterMax: not implemented by the local platform"


def test_refuse_unknown_adds_the_note_and_brackets_annotation_keys() -> None:
    with pytest.raises(ManifestError, match=r"^a\[x\.dev/y\]: not implemented by the local platform \(why\)$"):
        refuse_unknown({"x.dev/y": ""}, (), "a", {"x.dev/y": "why"})


def test_refuse_unknown_accepts_known_fields_and_the_document_root() -> None:
    refuse_unknown({"spec": {}}, {"spec"}, "")
    with pytest.raises(ManifestError, match=r"^status: "):
        refuse_unknown({"status": {}}, {"spec"}, "")


def test_absent_values_are_empty() -> None:
    assert mapping_at({"spec": None}, "spec", "") == {}
    assert list_at({}, "filters", "spec") == []
    assert text_at({}, "uri", "spec") is None
    assert integer_at({}, "retry", "spec", 0) is None


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: as_mapping([], "spec"), "spec: must be a mapping"),
        (lambda: as_mapping({1: 2}, "spec"), "spec: key 1 must be text"),
        (lambda: list_at({"filters": {}}, "filters", "spec"), "spec.filters: must be a list"),
        (lambda: text_at({"uri": 3}, "uri", "spec"), "spec.uri: must be text, not 3 (quote it)"),
        (lambda: text_mapping_at({"a": {"b": True}}, "a", ""), "a.b: must be text, not True (quote it)"),
        (lambda: required_text({"name": ""}, "name", "metadata"), "metadata.name: is required"),
        (lambda: integer_at({"retry": True}, "retry", "spec", 0), "spec.retry: must be a whole number, not True"),
        (lambda: integer_at({"retry": "3"}, "retry", "spec", 0), "spec.retry: must be a whole number, not '3'"),
        (lambda: integer_at({"retry": -1}, "retry", "spec", 0), "spec.retry: must be at least 0, not -1"),
    ],
)
def test_wrong_values_are_refused_with_their_path(read: object, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read()  # type: ignore[operator]
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT0.2S", 0.2),
        ("PT5M", 300),
        ("PT1H30M", 5400),
        ("P1D", 86_400),
        ("P2W", 1_209_600),
        ("P1DT2S", 86_402),
        ("PT0S", 0),
        ("PT0,5S", 0.5),
    ],
)
def test_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "5s", "PT-1S", "-PT1S", "P1Y", "P1M", "PT1.5M", "pt1s", "PT1S "]
)
def test_duration_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ISO-8601"):
        parse_duration(text)

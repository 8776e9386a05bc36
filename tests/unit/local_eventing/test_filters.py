"""Trigger filters: every dialect, nesting, precedence and refusals."""

import pytest

from infra.local.eventing.filters import parse_filter
from infra.local.fields import ManifestError

EVENT = {
    "specversion": "1.0",
    "id": "1",
    "source": "/wakeswap/intake",
    "type": "dev.wakeswap.intake.completed.v1",
    "media": "image",
    "subject": "job-7",
}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, True),
        ({"filter": {}}, True),
        ({"filter": {"attributes": {"type": "dev.wakeswap.intake.completed.v1"}}}, True),
        ({"filter": {"attributes": {"type": "dev.wakeswap.intake.completed.v1", "media": "image"}}}, True),
        ({"filter": {"attributes": {"type": "dev.wakeswap.intake.completed.v1", "media": "video"}}}, False),
        ({"filter": {"attributes": {"type": "dev.wakeswap.intake"}}}, False),
        ({"filter": {"attributes": {"priority": "batch"}}}, False),
        ({"filter": {"attributes": {"media": ""}}}, True),
        ({"filter": {"attributes": {"priority": ""}}}, False),
        ({"filters": []}, True),
        ({"filters": [{"exact": {"media": "image"}}]}, True),
        ({"filters": [{"exact": {"media": "Image"}}]}, False),
        ({"filters": [{"exact": {"media": "image", "id": "1"}}]}, True),
        ({"filters": [{"exact": {"media": "image", "id": "2"}}]}, False),
        ({"filters": [{"prefix": {"type": "dev.wakeswap."}}]}, True),
        ({"filters": [{"prefix": {"type": "intake"}}]}, False),
        ({"filters": [{"prefix": {"priority": "b"}}]}, False),
        ({"filters": [{"suffix": {"type": ".completed.v1"}}]}, True),
        ({"filters": [{"suffix": {"type": ".failed.v1"}}]}, False),
        ({"filters": [{"suffix": {"priority": "h"}}]}, False),
        ({"filters": [{"exact": {"media": "image"}}, {"suffix": {"type": ".v1"}}]}, True),
        ({"filters": [{"exact": {"media": "image"}}, {"suffix": {"type": ".v2"}}]}, False),
        ({"filters": [{"any": [{"exact": {"media": "video"}}, {"exact": {"media": "image"}}]}]}, True),
        ({"filters": [{"any": [{"exact": {"media": "video"}}, {"exact": {"media": "text"}}]}]}, False),
        ({"filters": [{"all": [{"exact": {"media": "image"}}, {"prefix": {"subject": "job-"}}]}]}, True),
        ({"filters": [{"all": [{"exact": {"media": "image"}}, {"prefix": {"subject": "x"}}]}]}, False),
        ({"filters": [{"not": {"exact": {"media": "video"}}}]}, True),
        ({"filters": [{"not": {"exact": {"media": "image"}}}]}, False),
        ({"filters": [{"not": {"exact": {"priority": "batch"}}}]}, True),
        ({"filters": [{"not": {"any": [{"exact": {"media": "image"}}, {"exact": {"id": "9"}}]}}]}, False),
        ({"filters": [{"not": {"not": {"all": [{"suffix": {"type": ".v1"}}]}}}]}, True),
        # `filters` with entries makes `filter` void, in both directions
        ({"filter": {"attributes": {"media": "video"}}, "filters": [{"exact": {"media": "image"}}]}, True),
        ({"filter": {"attributes": {"media": "image"}}, "filters": [{"exact": {"media": "video"}}]}, False),
        ({"filter": {"attributes": {"media": "video"}}, "filters": []}, False),
    ],
)
def test_matches(spec: dict[str, object], expected: bool) -> None:
    assert parse_filter(spec, "spec").matches(EVENT) is expected


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"filters": [{"cesql": "type = 'x'"}]}, "spec.filters[0].cesql", "not implemented"),
        ({"filters": [{}, {"cesql": "x"}]}, "spec.filters[0]", "exactly one dialect"),
        ({"filters": [{"exact": {"a": "b"}, "prefix": {"a": "b"}}]}, "spec.filters[0]", "exactly one dialect"),
        ({"filters": [{"exact": {}}]}, "spec.filters[0].exact", "must not be empty"),
        ({"filters": [{"prefix": {"type": ""}}]}, "spec.filters[0].prefix.type", "must not be empty"),
        ({"filters": [{"exact": {"Type": "x"}}]}, "spec.filters[0].exact.Type", "attribute names"),
        ({"filters": [{"exact": {"1a": "x"}}]}, "spec.filters[0].exact.1a", "attribute names"),
        ({"filters": [{"exact": {"image_ref": "x"}}]}, "spec.filters[0].exact.image_ref", "attribute names"),
        ({"filters": [{"exact": {"size": 3}}]}, "spec.filters[0].exact.size", "must be text"),
        ({"filters": [{"any": []}]}, "spec.filters[0].any", "must not be empty"),
        ({"filters": [{"any": [{"cesql": "x"}]}]}, "spec.filters[0].any[0].cesql", "not implemented"),
        ({"filters": [{"not": {"sufix": {}}}]}, "spec.filters[0].not.sufix", "not implemented"),
        ({"filters": [{"not": []}]}, "spec.filters[0].not", "must be a mapping"),
        ({"filters": {"exact": {}}}, "spec.filters", "must be a list"),
        ({"filter": {"attribute": {}}}, "spec.filter.attribute", "not implemented"),
        ({"filter": {"attributes": {"a-b": "x"}}}, "spec.filter.attributes.a-b", "attribute names"),
    ],
)
def test_refused(spec: dict[str, object], field: str, reason: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_filter(spec, "spec")
    assert caught.value.field == field
    assert reason in caught.value.reason

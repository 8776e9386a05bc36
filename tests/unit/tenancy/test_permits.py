"""What a job may ask for, by policy."""

from __future__ import annotations

import pytest

from shared.rejections import NotAllowedError
from shared.tenancy import permits
from shared.tenancy.tenant import Policy

ASKED = {"swapper": "mesh", "enhancer": "", "upscaler": ""}


@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        (Policy(), {}),
        (Policy(), {"swapper": "any", "enhancer": "any", "upscaler": "any"}),
        (Policy(stages=()), {}),
        (Policy(swappers=("mesh", "other")), {"swapper": "other"}),
        (Policy(enhancers=("a", "b")), {"enhancer": "a", "upscaler": "b"}),
        (Policy(enhancers=("a",)), {}),
    ],
)
def test_allowed(policy: Policy, asked: dict[str, str]) -> None:
    permits.check(policy, **{**ASKED, **asked})


@pytest.mark.parametrize(
    ("policy", "asked", "context"),
    [
        (Policy(stages=()), {"enhancer": "a"}, {"field": "enhancer", "stage": "enhance"}),
        (Policy(stages=()), {"upscaler": "a"}, {"field": "upscaler", "stage": "enhance"}),
        (Policy(swappers=("other",)), {}, {"field": "swapper", "model": "mesh", "allowed": ["other"]}),
        (Policy(enhancers=("a",)), {"enhancer": "b"}, {"field": "enhancer", "model": "b", "allowed": ["a"]}),
        (Policy(enhancers=("a",)), {"upscaler": "b"}, {"field": "upscaler", "model": "b", "allowed": ["a"]}),
    ],
)
def test_not_allowed(policy: Policy, asked: dict[str, str], context: dict[str, object]) -> None:
    with pytest.raises(NotAllowedError) as caught:
        permits.check(policy, **{**ASKED, **asked})
    assert (caught.value.code, caught.value.context) == ("not_allowed", context)


@pytest.mark.parametrize(
    ("highest", "wanted", "given"),
    [
        ("interactive", "interactive", "interactive"),
        ("interactive", "batch", "batch"),
        ("batch", "interactive", "batch"),
        ("batch", "batch", "batch"),
    ],
)
def test_priority(highest: str, wanted: str, given: str) -> None:
    assert permits.priority(Policy(priority=highest), wanted) == given

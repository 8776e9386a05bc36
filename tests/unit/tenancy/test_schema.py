"""docs/tenant.schema.json and the process agree on every file: both are made from one declaration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from shared.errors import ConfigError
from shared.tenancy import api_keys, fields
from shared.tenancy.folder import parse
from shared.tenancy.schema import RECORDS
from shared.tenancy.tenant import Policy, Webhook
from tests.unit.tenancy.files import with_keys

NOW = 1_800_000_000.0
SCHEMA: dict[str, Any] = json.loads((Path(__file__).parents[3] / "docs/tenant.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER)
KEY = {**vars(api_keys.make(NOW, seconds=60)[1]), "scopes": ["jobs:read"]}

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 0.5, 8, 60, 240, 1000, 1001, 16_384, 10**9, 10**12, "", "x", "mesh", "batch", "reject",
    "shared", "none", "any", "https://example.com/x", "http://example.com", "ftp://x", "2030-01-31T12:00:00Z",
    "2030-01-31", "a" * 8, "0" * 32, "0" * 64, "jobs:read", "\x01", "stable", "a/b", "*.example.com", "Example.com",
    [], ["enhance"], ["enhance", "enhance"], ["mesh"], ["no such"], ["a", 1], ["jobs:read", "jobs:write"],
    ["*.example.com"], ["*.*.com"], ["a b"], {}, {"a": 1}, ["x"] * 2, [f"m{index}" for index in range(101)],
]  # fmt: skip


def taken(document: Any) -> bool:
    try:
        parse("acme.yaml", json.dumps(document), NOW)
    except ConfigError:
        return False
    return True


def part(name: str, record: dict[str, Any]) -> dict[str, Any]:
    return {name: [record] if name == "keys" else record}


FIELDS = [(name, field) for name, kind in RECORDS.items() for field in fields.kinds(kind)]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(("name", "field"), FIELDS, ids=lambda part: part)
def test_every_field_takes_what_its_schema_takes(name: str, field: str) -> None:
    base = KEY if name == "keys" else {"allow_local": True} if name == "webhook" else {}
    documents = [part(name, {**base, field: value}) for value in VALUES]
    answers = [(document, taken(document), VALIDATOR.is_valid(document)) for document in documents]
    assert [document for document, ours, theirs in answers if ours != theirs] == []
    assert {ours for _, ours, _ in answers} == {True, False}


@pytest.mark.parametrize("document", [{}, {"name": "acme"}, {"policy": {}}, {"webhook": {}}, {"keys": []}])
def test_every_part_may_be_left_out(document: Any) -> None:
    assert taken(document)
    assert VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "document",
    [[], None, "x", {"polcy": {}}, {"policy": []}, {"keys": {}}, {"name": "Acme!"}, part("policy", {"max": 1})]
    + [part("keys", {name: value for name, value in KEY.items() if name != left}) for left in ("look_up", "created")],
)
def test_neither_takes_what_is_no_tenant(document: Any) -> None:
    assert not taken(document)
    assert not VALIDATOR.is_valid(document)


def test_defaults_are_the_records() -> None:
    for name, record in (("policy", Policy()), ("webhook", Webhook())):
        described = SCHEMA["properties"][name]["properties"]
        for field, entry in described.items():
            value = getattr(record, field)
            assert entry["default"] == (list(value) if isinstance(value, tuple) else value)
            assert entry["description"]


def test_what_the_schema_cannot_say() -> None:
    """At most two live keys, no look-up twice, http only where it is allowed: the process says so."""
    keys = [api_keys.make(NOW)[1] for _ in range(3)]
    for text, field in (
        (with_keys(*keys), "keys"),
        (with_keys(keys[0], keys[0]), "keys[1].look_up"),
        ("webhook: {url: 'http://example.com'}", "webhook.url"),
        ("name: other", "name"),
    ):
        with pytest.raises(ConfigError) as caught:
            parse("acme.yaml", text, NOW)
        assert caught.value.context == {"field": field}
    expired = [api_keys.make(NOW - 100, seconds=60)[1] for _ in range(3)]
    assert len(parse("acme.yaml", with_keys(*keys[:2], *expired), NOW).keys) == 5

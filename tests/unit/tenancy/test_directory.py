"""Tenants from their settings: found by name and by key, and every mistake named."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ConfigError, UnauthorizedError
from shared.rejections import UnknownTenantError
from shared.tenancy.directory import load
from shared.tenancy.fields import Real, Whole, kinds
from shared.tenancy.tenant import Policy, Webhook

SECRET = "whsec_" + base64.b64encode(bytes(24)).decode()


def one(**entry: Any) -> str:
    return json.dumps({"demo": entry})


def test_defaults() -> None:
    tenant = load('{"demo": {}}').get("demo")
    assert (tenant.name, tenant.policy, tenant.webhook) == ("demo", Policy(), Webhook())


def test_everything_set() -> None:
    policy = {"nsfw_threshold": 0.5, "max_pixels": 100, "max_bytes": 200, "link_seconds": 60, "licences": "research"}
    policy |= {"wake": "after-moderation"}
    hook = {"url": "https://example.com/hook", "allow_local": False}
    tenant = load(one(policy=policy, webhook=hook), "demo=abc=def0123456789", f"demo={SECRET}").get("demo")
    assert tenant.policy == Policy(
        nsfw_threshold=0.5, max_pixels=100, max_bytes=200, link_seconds=60, licences="research", wake="after-moderation"
    )
    assert tenant.webhook == Webhook("https://example.com/hook", SECRET)
    assert SECRET not in repr(tenant)
    assert tenant.keys[0].digest not in repr(tenant)


def test_keys() -> None:
    directory = load('{"a": {}, "b": {}, "c": {}}', "a=key-a-0123456789, b=key=b-0123456789")
    assert directory.authenticate("key-a-0123456789").tenant.name == "a"
    assert directory.authenticate("key=b-0123456789").tenant.name == "b"
    with pytest.raises(UnknownTenantError):
        directory.get("d")


@given(st.text())
def test_no_other_key_opens(key: str) -> None:
    directory = load('{"a": {}, "b": {}}', "a=key-a-0123456789")  # b has no key, and the empty one is not its
    if key != "key-a-0123456789":
        with pytest.raises(UnauthorizedError):
            directory.authenticate(key)


@pytest.mark.parametrize(
    ("tenants", "field"),
    [
        ("{", "tenants"),
        ("[]", "tenants"),
        ('{"demo": 1}', "tenants.demo"),
        ('{"De mo": {}}', "tenants.De mo"),
        ('{"../x": {}}', "tenants.../x"),
        (one(polcy={}), "tenants.demo.polcy"),
        (one(policy=[]), "tenants.demo.policy"),
        (one(policy={"max_size": 1}), "tenants.demo.policy.max_size"),
        (one(policy={"nsfw_threshold": "0.5"}), "tenants.demo.policy.nsfw_threshold"),
        (one(policy={"licences": "all"}), "tenants.demo.policy.licences"),
        (one(policy={"licences": ["any"]}), "tenants.demo.policy.licences"),
        (one(policy={"wake": "never"}), "tenants.demo.policy.wake"),
        (one(policy={"nsfw_threshold": float("nan")}), "tenants"),
        (one(policy={"max_bytes": 1.5}), "tenants.demo.policy.max_bytes"),
        (one(policy={"max_bytes": True}), "tenants.demo.policy.max_bytes"),
        (one(policy={"link_seconds": 10**400}), "tenants.demo.policy.link_seconds"),
        (one(webhook={"uri": "x"}), "tenants.demo.webhook.uri"),
        (one(webhook={"url": 1}), "tenants.demo.webhook.url"),
        (one(webhook={"url": "http://example.com"}), "tenants.demo.webhook.url"),
        (one(webhook={"url": "file:///etc/passwd", "allow_local": True}), "tenants.demo.webhook.url"),
        (one(webhook={"allow_local": "yes"}), "tenants.demo.webhook.allow_local"),
    ],
)
def test_mistakes_are_named(tenants: str, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tenants)
    assert caught.value.context == {"field": field}


NUMBERS = {name: kind for name, kind in kinds(Policy).items() if isinstance(kind, Whole | Real)}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_ranges(name: str) -> None:
    low, high = NUMBERS[name].low, NUMBERS[name].high
    for value in (low, high):
        assert getattr(load(one(policy={name: value})).get("demo").policy, name) == value
    for value in (low - 1, high + 1):
        with pytest.raises(ConfigError):
            load(one(policy={name: value}))
    assert low <= getattr(Policy(), name) <= high


@pytest.mark.parametrize(
    ("keys", "secrets", "field"),
    [
        ("demo", "", "api_keys"),
        ("=secret", "", "api_keys"),
        ("demo=", "", "api_keys"),
        ("demo=a,demo=b", "", "api_keys.demo"),
        ("demo=short-key-15-ch", "", "api_keys.demo"),
        ("demo=a key with spaces in it", "", "api_keys.demo"),
        ("demo=schlüssel-schlüssel", "", "api_keys.demo"),
        ("other=secret", "", "api_keys.other"),
        ("", "demo=nosecret", "webhook_secrets.demo"),
        ("", "demo=whsec_!!", "webhook_secrets.demo"),
        ("", "demo=whsec_c2hvcnQ=", "webhook_secrets.demo"),
        ("", f"other={SECRET}", "webhook_secrets.other"),
    ],
)
def test_mistakes_in_secrets_are_named_and_the_secret_is_not(keys: str, secrets: str, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load('{"demo": {}}', keys, secrets)
    assert caught.value.context == {"field": field}
    assert "secret" not in caught.value.detail.lower().replace("whsec", "")


def test_two_tenants_with_one_key() -> None:
    with pytest.raises(ConfigError, match="same key"):
        load('{"a": {}, "b": {}}', "a=same-0123456789-key,b=same-0123456789-key")

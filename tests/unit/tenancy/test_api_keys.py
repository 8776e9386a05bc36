"""Keys open what they were made for, for as long as they were made for, and no other key opens anything."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from shared.errors import UnauthorizedError
from shared.refusals import InsufficientScopeError
from shared.tenancy import api_keys
from shared.tenancy.caller import READ, WRITE
from shared.tenancy.directory import Directory, load
from shared.tenancy.tenant import Tenant

NOW = 1_800_000_000.0
ENVIRONMENT_KEY = "made-up-by-an-operator"


def test_a_key_is_256_random_bits_and_only_a_salted_digest_is_kept() -> None:
    key, kept = api_keys.make(NOW, label="laptop", seconds=60)
    other, _ = api_keys.make(NOW)
    assert re.fullmatch(r"wk_[a-z2-7]{8}_[a-z2-7]{52}", key)
    assert key != other
    assert (kept.look_up, kept.created, kept.expires) == (key[3:11], "2027-01-15T08:00:00Z", "2027-01-15T08:01:00Z")
    assert key[12:] not in "".join(map(str, vars(kept).values()))
    assert kept.digest not in repr(kept)
    again = api_keys.keep(key)
    assert (again.look_up, again.digest == kept.digest) == (kept.look_up, False)


def test_a_key_opens_until_it_expires() -> None:
    key, kept = api_keys.make(NOW, seconds=60)
    assert [api_keys.opens(kept, key, NOW + later) for later in (0, 59.9, 60, 10**9)] == [True, True, False, False]
    forever, kept = api_keys.make(NOW)
    assert api_keys.opens(kept, forever, NOW + 10**9)


@pytest.mark.parametrize("at", [3, 12, 63])
def test_one_other_character_opens_nothing(at: int) -> None:
    key, kept = api_keys.make(NOW)
    wrong = key[:at] + ("a" if key[at] != "a" else "b") + key[at + 1 :]
    assert not api_keys.opens(kept, wrong, NOW)


class Digests:
    """Counts what is digested."""

    def __init__(self, digest: object) -> None:
        self.count = 0
        self._digest = digest

    def __call__(self, salt: str, key: str) -> str:
        self.count += 1
        return self._digest(salt, key)  # type: ignore[operator,no-any-return]


def test_every_answer_takes_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    key, kept = api_keys.make(NOW)
    old, expired = api_keys.make(NOW - 100, seconds=60)
    many = {f"t{index}": Tenant(f"t{index}", keys=(api_keys.make(NOW)[1],)) for index in range(20)}
    directory = Directory(
        {**many, "demo": Tenant("demo", keys=(kept, expired, api_keys.keep(ENVIRONMENT_KEY)))}, clock=lambda: NOW
    )
    digests = Digests(api_keys.digest)
    monkeypatch.setattr(api_keys, "digest", digests)
    unknown, _ = api_keys.make(NOW)
    digests.count = 0
    counts = {}
    for name, sent in {
        "right": key,
        "expired": old,
        "wrong": key[:-4] + "aaaa",
        "unknown": unknown,
        "no form": "something-else-of-16",
        "environment": ENVIRONMENT_KEY,
        "a look-up alone": key[:12],
        "a digest": kept.digest,
    }.items():
        before = digests.count
        try:
            directory.authenticate(sent)
            opened = True
        except UnauthorizedError:
            opened = False
        counts[name] = (digests.count - before, opened)
    assert {count for count, _ in counts.values()} == {2}
    assert {name for name, (_, opened) in counts.items() if opened} == {"right", "environment"}


def test_two_live_keys_work_side_by_side() -> None:
    (first, one), (second, two) = api_keys.make(NOW, label="old"), api_keys.make(NOW, label="new")
    directory = Directory({"demo": Tenant("demo", keys=(one, two))}, clock=lambda: NOW)
    assert [directory.authenticate(key).key_id for key in (first, second)] == [one.look_up, two.look_up]


def test_a_callers_scopes_are_its_keys() -> None:
    key, kept = api_keys.make(NOW, scopes=(READ,))
    caller = Directory({"demo": Tenant("demo", keys=(kept,))}).authenticate(key)
    caller.need(READ)
    with pytest.raises(InsufficientScopeError) as caught:
        caller.need(WRITE)
    assert caught.value.context == {"scope": WRITE}


def test_a_key_of_the_environment_is_not_named_by_anything_made_from_it() -> None:
    caller = load('{"demo": {}}', f"demo={ENVIRONMENT_KEY}").authenticate(ENVIRONMENT_KEY)
    assert (caller.tenant.name, caller.key_id) == ("demo", "env:demo")


def test_a_key_that_two_tenants_have_opens_neither(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    key, kept = api_keys.make(NOW)
    good, other = api_keys.make(NOW)
    directory = Directory({"a": Tenant("a", keys=(kept, other)), "b": Tenant("b", keys=(replace(kept, label="x"),))})
    with pytest.raises(UnauthorizedError):
        directory.authenticate(key)
    assert directory.authenticate(good).tenant.name == "a"
    assert "several tenants have it: a, b" in caplog.text

"""Which tokens are believed, whose they are, and that every other one gets the same answer."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from shared.edge_settings import JwtSettings
from shared.errors import ConfigError
from shared.refusals import InvalidTokenError, TokenKeysUnavailableError
from shared.serving.answers import problem
from shared.tenancy import tokens as module
from shared.tenancy.caller import READ, SCOPES, WRITE
from shared.tenancy.tokens import Tokens, open_tokens
from tests.unit.tokens.signing import (
    ALGORITHMS,
    AUDIENCE,
    ISSUER,
    claims,
    directory,
    jwk,
    key_set,
    pem,
    private,
    token,
    tokens,
)

DATA = Path(__file__).resolve().parents[2] / "data" / "jwt"
CASES: dict[str, Any] = json.loads((DATA / "tokens.json").read_text())
GOOD = {"valid_rs256", "audience_list_ok", "kid_traversal"}
SECRET = "a-secret-that-the-issuer-has-too-0123456789-0123456789"


@pytest.fixture
def field() -> Tokens:
    """Set up as the field cases say."""
    made = CASES["settings"]
    opened = open_tokens(
        JwtSettings(issuer=made["iss"], audience=made["aud"], keys=(DATA / "public_key.pem").read_text())
    )
    assert opened is not None
    return opened


def refused(checked: Tokens, text: str) -> InvalidTokenError:
    with pytest.raises(InvalidTokenError) as caught:
        checked.caller(text, directory().get)
    return caught.value


@pytest.mark.parametrize("name", sorted(CASES["tokens"]))
def test_sec_01_tokens_of_the_field_cases(field: Tokens, name: str) -> None:
    text = CASES["tokens"][name]
    assert module.LOOKS_LIKE.fullmatch(text)
    if name in GOOD:
        assert field.caller(text, directory().get).tenant.name == "t-acme"
    else:
        assert problem(refused(field, text)) == problem(InvalidTokenError()), "the same answer whatever is wrong"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("form", [lambda name: key_set(jwk(name)), pem], ids=["jwks", "pem"])
def test_every_kind_of_key_checks_its_own_algorithm(algorithm: str, form: Callable[[str], str]) -> None:
    checked = tokens(keys=form(algorithm))
    caller = checked.caller(token(algorithm), directory().get)
    assert (caller.tenant.name, caller.scopes) == ("demo", frozenset(SCOPES))
    refused(checked, token(algorithm, "two"))
    for other in ALGORITHMS:
        if other != algorithm:
            refused(checked, token(other))


def test_an_rsa_key_checks_no_other_of_its_algorithms() -> None:
    for other in ("RS512", "PS256"):
        refused(tokens(keys=pem("RS256")), jwt.encode(claims(), private("RS256"), other))


def test_hs256_needs_the_secret_and_the_secret_needs_hs256() -> None:
    checked = tokens(secret=SECRET)
    assert checked.caller(jwt.encode(claims(), SECRET, "HS256"), directory().get).tenant.name == "demo"
    refused(checked, jwt.encode(claims(), SECRET + "x", "HS256"))
    refused(checked, jwt.encode(claims(), SECRET, "HS384"))
    refused(checked, token("RS256"))
    refused(tokens(keys=pem("ES256")), jwt.encode(claims(), SECRET, "HS256"))


def test_a_secret_in_a_key_set_checks_nothing() -> None:
    shared = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET.encode()).rstrip(b"=").decode(), "kid": "one"}
    checked = tokens(keys=key_set(shared, jwk("ES256")))
    refused(checked, jwt.encode(claims(), SECRET, "HS256", headers={"kid": "one"}))
    assert checked.caller(token(), directory().get)


def test_what_is_no_signing_key_of_ours_is_left_out() -> None:
    small = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 1024).public_key()))
    left_out = [
        jwk("ES256", use="enc"),
        jwk("RS256", alg="PS256"),
        {**jwk("ES256"), "d": "x"},
        jwk("ES256", crv="P-384"),
        jwk("EdDSA", x="AA"),
        jwk("EdDSA", kid=7),
        jwk("RS256", kty=["RSA"]),
        jwk("ES256", crv={}),
        {**small, "kid": "one"},
        {},
        "key",
    ]
    for entry in left_out:
        with pytest.raises(TokenKeysUnavailableError):
            tokens(keys=json.dumps({"keys": [entry]})).caller(token(), directory().get)
    every = tokens(keys=json.dumps({"keys": [*left_out, jwk("ES256")]}))
    assert every.caller(token(), directory().get)


def test_keys_are_told_apart_by_their_ids() -> None:
    checked = tokens(keys=key_set(jwk("ES256", "one"), jwk("ES256", "two"), jwk("EdDSA", "three")))
    assert checked.caller(token("ES256", "two", kid="two"), directory().get)
    assert checked.caller(token("EdDSA", "three", kid=None), directory().get), "without an id each is tried"
    refused(checked, token("ES256", "two", kid="one"))
    refused(checked, token("ES256", "one", kid="nobody"))
    refused(checked, token("ES256", "one", kid="x" * 5000))


@pytest.mark.parametrize(
    ("more", "good"),
    [
        ({"exp": -50}, True),
        ({"exp": -70}, False),
        ({"nbf": 50}, True),
        ({"nbf": 90}, False),
        ({"iat": 50}, True),
        ({"iat": 90}, False),
    ],
)
def test_clocks_may_differ_by_a_minute(more: dict[str, int], good: bool) -> None:
    checked = tokens(keys=pem("ES256"))
    text = token(**{name: int(time.time()) + seconds for name, seconds in more.items()})
    if good:
        assert checked.caller(text, directory().get)
    else:
        refused(checked, text)


@pytest.mark.parametrize(
    "more",
    [
        {"exp": None},
        {"exp": "soon"},
        {"exp": float("inf")},
        {"aud": None},
        {"aud": []},
        {"aud": {"wakeswap": 1}},
        {"aud": AUDIENCE.upper()},
        {"iss": None},
        {"iss": [ISSUER]},
        {"iss": ISSUER + "x"},
        {"sub": 7},
        {"tenant": "nobody"},
        {"tenant": "Demo"},
        {"tenant": "demo\n"},
        {"tenant": "demo/../t-acme"},
        {"tenant": {"name": "demo"}},
        {"scope": ["jobs:read"]},
        {"scope": 1},
    ],
)
def test_a_claim_that_is_missing_or_odd_is_refused(more: dict[str, object]) -> None:
    refused(tokens(keys=pem("ES256")), token(**more))


@pytest.mark.parametrize(
    ("scope", "given"),
    [
        (None, set(SCOPES)),
        ("jobs:read", {READ}),
        ("openid jobs:write profile", {WRITE}),
        ("openid", set()),
        ("", set()),
        ("jobs:readjobs:write JOBS:READ", set()),
    ],
)
def test_scopes_of_a_token(scope: str | None, given: set[str]) -> None:
    assert tokens(keys=pem("ES256")).caller(token(scope=scope), directory().get).scopes == given


def test_the_tenant_stands_in_the_claim_that_is_set() -> None:
    claim = "https://example.com/tenant"
    checked = tokens(keys=pem("ES256"), tenant_claim=claim)
    assert checked.caller(token(tenant=None, **{claim: "t-acme"}), directory().get).tenant.name == "t-acme"
    refused(checked, token())


def test_a_key_id_is_of_the_tenant_and_the_subject_and_names_nobody() -> None:
    checked = tokens(keys=pem("ES256"))
    ids = [checked.caller(token(**more), directory().get).key_id for more in ({}, {"exp": 2**40}, {"sub": "u-2"})]
    ids.append(checked.caller(token(tenant="t-acme"), directory().get).key_id)
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert "u-1" not in ids[0]
    assert checked.caller(token(sub=None), directory().get).key_id not in ids


def test_who_did_not_guess_is_told_apart_inside() -> None:
    """A client that goes on with its expired token must not get its address blocked; a guesser must."""
    checked = tokens(keys=pem("ES256"))
    assert refused(checked, token(exp=int(time.time()) - 600)).signed
    assert refused(checked, token(tenant="nobody")).signed
    assert refused(checked, token(aud="other")).signed
    assert not refused(checked, token(name="two")).signed
    assert not refused(checked, "a.b.c").signed
    assert not refused(checked, token()[:-4]).signed


@pytest.mark.parametrize(
    "text",
    [
        "a.b.c",
        "..",
        "eyJhbGciOiJFUzI1NiJ9..",
        token() + "x",
        token().replace(".", "..", 1),
        "W10.e30.AA",
        "bnVsbA.e30.AA",
    ],
)
def test_what_is_no_token_is_refused_alike(text: str) -> None:
    assert problem(refused(tokens(keys=pem("ES256")), text)) == problem(InvalidTokenError())


def test_the_reason_is_logged_and_nothing_of_the_token(caplog: pytest.LogCaptureFixture) -> None:
    text = token(aud="other")
    with caplog.at_level(logging.INFO):
        refused(tokens(keys=pem("ES256")), text)
    assert "InvalidAudienceError" in caplog.text
    assert not any(part in caplog.text for part in text.split("."))


@pytest.mark.parametrize(
    "settings",
    [
        {"issuer": ISSUER},
        {"issuer": ISSUER, "audience": AUDIENCE},
        {"audience": AUDIENCE, "secret": SECRET},
        {"issuer": ISSUER, "secret": SECRET},
        {"issuer": ISSUER, "audience": AUDIENCE, "secret": SECRET, "jwks_url": "https://issuer.example/keys"},
        {"issuer": ISSUER, "audience": AUDIENCE, "keys": "{}"},
        {"issuer": ISSUER, "audience": AUDIENCE, "keys": "no keys"},
        {
            "issuer": ISSUER,
            "audience": AUDIENCE,
            "keys": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        },
    ],
)
def test_half_a_set_up_stops_the_process(settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        open_tokens(JwtSettings(**settings))


def test_no_set_up_takes_no_tokens() -> None:
    assert open_tokens(JwtSettings()) is None


def test_several_pem_keys_and_one_that_is_damaged() -> None:
    checked = tokens(keys=pem("RS256") + pem("ES256", "two"))
    assert checked.caller(token("RS256"), directory().get)
    assert checked.caller(token("ES256", "two"), directory().get)
    damaged = pem("RS256") + "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    with pytest.raises(TokenKeysUnavailableError):
        tokens(keys=damaged).caller(token("RS256"), directory().get)

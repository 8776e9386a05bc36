"""Keys by address: read once, kept, read anew in measure, and never lost to a server that fails."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.refusals import InvalidTokenError, TokenKeysUnavailableError
from shared.tenancy import issuer as reading
from shared.tenancy.key_sources import COOLDOWN_SECONDS, LIFETIME_SECONDS, RemoteKeys
from shared.tenancy.tokens import Tokens
from tests.unit.tokens.signing import AUDIENCE, ISSUER, Issuer, directory, jwk, key_set, token, tokens

ROOT = Path(__file__).resolve().parents[3]


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[Issuer]:
    made = Issuer(key_set(jwk("ES256")))
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def checked(server: Issuer, clock: Clock) -> Tokens:
    return Tokens(ISSUER, AUDIENCE, "tenant", RemoteKeys(lambda: reading.download(server.url), clock=clock))


def good(checked: Tokens, text: str) -> bool:
    try:
        checked.caller(text, directory().get)
    except InvalidTokenError:
        return False
    return True


def test_a_set_is_read_once_for_many_tokens(checked: Tokens, server: Issuer) -> None:
    assert all(good(checked, token(sub=f"u-{number}")) for number in range(20))
    assert server.readings == 1


def test_a_set_that_is_old_is_read_anew(checked: Tokens, server: Issuer, clock: Clock) -> None:
    assert good(checked, token())
    server.document = key_set(jwk("ES256", "two"))
    clock.now += LIFETIME_SECONDS - 1
    assert good(checked, token()), "a key that was withdrawn is believed until the set is old"
    clock.now += 1
    assert not good(checked, token())
    assert good(checked, token(name="two", kid="two"))
    assert server.readings == 2


def test_an_unknown_key_id_reads_anew_but_not_with_every_token(checked: Tokens, server: Issuer, clock: Clock) -> None:
    assert good(checked, token())
    server.document = key_set(jwk("ES256"), jwk("ES256", "two"))
    assert not good(checked, token(name="two", kid="two")), "just read"
    clock.now += COOLDOWN_SECONDS
    assert good(checked, token(name="two", kid="two")), "the issuer has changed its key"
    clock.now += COOLDOWN_SECONDS
    for number in range(50):
        assert not good(checked, token(kid=f"made-up-{number}"))
    assert server.readings == 3
    assert good(checked, token())


@pytest.mark.parametrize(
    ("status", "document"),
    [(503, ""), (404, ""), (200, ""), (200, "<html>"), (200, '{"keys": []}'), (200, '{"keys": [{"kty": "oct"}]}')],
)
def test_a_server_that_fails_takes_no_known_key_away(
    checked: Tokens, server: Issuer, clock: Clock, status: int, document: str
) -> None:
    assert good(checked, token())
    server.status, server.document = status, document
    for _ in range(5):
        clock.now += LIFETIME_SECONDS
        assert good(checked, token())
    readings = server.readings
    assert readings == 6
    assert good(checked, token())
    assert not good(checked, token(kid="other"))
    assert server.readings == readings, "a server that fails is not asked with every token"


def test_a_server_that_is_gone_takes_no_known_key_away(checked: Tokens, server: Issuer, clock: Clock) -> None:
    assert good(checked, token())
    server.close()
    clock.now += LIFETIME_SECONDS
    assert good(checked, token())


def test_without_any_key_nothing_is_said_about_the_token(checked: Tokens, server: Issuer, clock: Clock) -> None:
    server.status = 500
    for _ in range(3):
        with pytest.raises(TokenKeysUnavailableError):
            checked.caller(token(), directory().get)
    assert server.readings == 1
    server.status = 200
    clock.now += COOLDOWN_SECONDS
    assert good(checked, token())


def test_a_redirect_is_not_followed(checked: Tokens, server: Issuer) -> None:
    other = Issuer(key_set(jwk("ES256")))
    server.status, server.location = 302, other.url
    with pytest.raises(TokenKeysUnavailableError):
        checked.caller(token(), directory().get)
    assert other.readings == 0
    other.close()


def test_a_body_without_an_end_is_given_up(server: Issuer) -> None:
    server.document = "x" * (reading.LONGEST + 1)
    with pytest.raises(OSError, match="too long"):
        reading.download(server.url)


def test_an_address_that_a_token_names_is_never_called(checked: Tokens, server: Issuer) -> None:
    other = Issuer(key_set(jwk("ES256", "two")))
    import jwt

    from tests.unit.tokens.signing import claims, private

    text = jwt.encode(
        claims(),
        private("ES256", "two"),
        "ES256",
        headers={"kid": "two", "jku": other.url, "x5u": other.url, "jwk": jwk("ES256", "two")},
    )
    assert not good(checked, text)
    assert (other.readings, server.readings) == (0, 1)
    other.close()


def test_many_first_tokens_wait_for_one_reading(server: Issuer) -> None:
    begun, go = threading.Event(), threading.Event()

    def slowly() -> bytes:
        begun.set()
        assert go.wait(60)
        return reading.download(server.url)

    checked = Tokens(ISSUER, AUDIENCE, "tenant", RemoteKeys(slowly))
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(good(checked, token()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    go.set()
    for thread in threads:
        thread.join(60)
    assert results == [True] * 8
    assert server.readings == 1


def test_while_an_old_set_is_read_anew_nobody_waits_for_it(server: Issuer, clock: Clock) -> None:
    begun, go = threading.Event(), threading.Event()

    def second_time_slowly() -> bytes:
        if server.readings:
            begun.set()
            assert go.wait(60)
        return reading.download(server.url)

    checked = Tokens(ISSUER, AUDIENCE, "tenant", RemoteKeys(second_time_slowly, clock=clock))
    assert good(checked, token())
    clock.now += LIFETIME_SECONDS
    first = threading.Thread(target=good, args=(checked, token()))
    first.start()
    assert begun.wait(60)
    assert good(checked, token()), "by the keys that are known, while another reads"
    assert server.readings == 1
    go.set()
    first.join(60)
    assert server.readings == 2


def test_the_address_of_the_setting_is_read(server: Issuer) -> None:
    assert good(tokens(jwks_url=server.url), token())


def test_nothing_is_imported_before_a_token_comes() -> None:
    code = """
import sys
from shared.edge_settings import JwtSettings
from shared.tenancy.tokens import open_tokens
for more in ({"jwks_url": "https://issuer.example/"}, {"secret": "x" * 32}, {"keys": '{"keys": [{}]}'}):
    assert open_tokens(JwtSettings(issuer="i", audience="a", **more))
print([name for name in ("jwt", "cryptography", "urllib.request") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

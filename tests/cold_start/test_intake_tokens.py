"""Tokens at the real front door: set up by the environment, keys from a real issuer, nothing of them in the log."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.services.process import ROOT, StageProcess, exchange, listening
from tests.unit.tokens.signing import AUDIENCE, ISSUER, Issuer, jwk, key_set, token

pytestmark = pytest.mark.slow


def test_sec_01_a_process_believes_its_issuers_tokens_and_no_others(tmp_path: Path) -> None:
    issuer = Issuer(key_set(jwk("ES256"), jwk("RS256", "two")))
    settings = {
        "WAKESWAP_JWT_ISSUER": ISSUER,
        "WAKESWAP_JWT_AUDIENCE": AUDIENCE,
        "WAKESWAP_JWT_JWKS_URL": issuer.url,
        "WAKESWAP_JWT_TENANT_CLAIM": "org",
    }
    right = [token(org="demo"), token("RS256", "two", kid="two", org="demo")]
    wrong = [
        token(),
        token(org="nobody"),
        token(name="other", org="demo"),
        token(org="demo", exp=int(time.time()) - 90),
    ]
    with listening() as listener:
        process = StageProcess("intake", tmp_path, listener, package="functions", **settings)
        try:
            process.wait_ready(60)
            assert issuer.readings == 0
            with closing(process.connect()) as connection:
                sent = [*right, *wrong, right[0]]
                answers = [
                    exchange(connection, "GET", "/v1/jobs", headers={"Authorization": f"Bearer {text}"})
                    for text in sent
                ]
            assert [answer.status for answer in answers] == [200, 200, 401, 401, 401, 401, 200]
            refused = answers[2:6]
            assert {answer.code for answer in refused} == {"invalid_token"}
            assert len({answer.body for answer in refused}) == 1, "the same bytes whatever is wrong"
            assert issuer.readings == 1
            assert not any(part in process.log() for text in sent for part in text.split(".")[1:])
        finally:
            process.kill()
            issuer.close()


def test_half_a_set_up_does_not_start() -> None:
    environ = {"WAKESWAP_EVENT_KEYS": "unsigned", "WAKESWAP_JWT_ISSUER": "x"}
    code = f"from shared.serving import app; app.create('intake', environ={environ})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ConfigError: Tokens need an issuer, an audience" in done.stderr

"""The threshold in the HTTP API: tokens beside keys, limits by key and by address, blocks, and what answers say."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from shared.edge_settings import RateSettings
from shared.refusals import TokenKeysUnavailableError
from shared.serving.edge import Edge
from shared.serving.rates import Rates
from shared.tenancy.key_sources import RemoteKeys
from shared.tenancy.tokens import Tokens
from tests.unit.edge.test_rates import Time
from tests.unit.front.api import Api, code
from tests.unit.jobs.world import Counted
from tests.unit.tokens.signing import AUDIENCE, ISSUER, pem, token, tokens

CASES = json.loads((Path(__file__).resolve().parents[2] / "data" / "jwt" / "tokens.json").read_text())
CLIENT, OTHER = "198.51.100.7", "198.51.100.8"
WRONG = {"Authorization": "Bearer wrong-key-0123456789"}


def opened(root: Path, proxies: int = 1, **settings: int) -> Api:
    """An API with limits; behind one proxy, so that tests come from where they say."""
    made = RateSettings(**settings)  # type: ignore[arg-type]
    return Api(root, edge=Edge(tokens(keys=pem("ES256")), Rates(made, Counted()), proxies))


def get(api: Api, client: str = CLIENT, path: str = "/v1/jobs", **headers: str) -> TestResponse:
    """Without a key, unless `Authorization` is given."""
    return api.client.get(path, headers={"X-Forwarded-For": client, **headers})


def keyed(api: Api, tenant: str = "demo", client: str = CLIENT) -> TestResponse:
    return api.call("GET", "/v1/jobs", tenant, headers={"X-Forwarded-For": client})


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


# tokens


def test_a_token_is_as_good_as_a_key(tmp_path: Path) -> None:
    api = opened(tmp_path)
    sent = api.send(headers=bearer(token()))
    assert sent.status_code == 202
    path = sent.get_json()["href"]
    assert get(api, path=path, **bearer(token())).status_code == 200
    assert api.call("GET", path).status_code == 200, "the tenant's own key sees the job too"
    assert get(api, path=path, **bearer(token(tenant="t-nobody"))).status_code == 401
    assert get(api, path=path, **bearer(token(tenant="acme"))).status_code == 404
    assert keyed(api).status_code == 200


def test_scopes_of_a_token_hold(tmp_path: Path) -> None:
    api = opened(tmp_path)
    reader, writer = bearer(token(scope="jobs:read")), bearer(token(scope="jobs:write"))
    assert get(api, **reader).status_code == 200
    assert code(api.send(headers=reader)) == (403, "insufficient_scope")
    assert code(get(api, **writer)) == (403, "insufficient_scope")
    assert api.send(headers=writer).status_code == 202


@pytest.mark.parametrize("name", sorted(set(CASES["tokens"]) - {"valid_rs256", "audience_list_ok", "kid_traversal"}))
def test_sec_01_the_answer_to_a_bad_token_never_says_why(tmp_path: Path, name: str) -> None:
    made = CASES["settings"]
    keys = (Path(__file__).resolve().parents[2] / "data" / "jwt" / "public_key.pem").read_text()
    checked = Tokens(made["iss"], made["aud"], "tenant", tokens(keys=keys).keys)
    answer = Api(tmp_path, edge=Edge(checked)).client.get("/v1/jobs", headers=bearer(CASES["tokens"][name]))
    assert code(answer) == (401, "invalid_token")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.get_json(force=True)["detail"] == "The token is not valid"
    assert "context" not in answer.get_json(force=True)


def test_without_a_set_up_a_token_is_a_wrong_key(tmp_path: Path) -> None:
    assert code(get(Api(tmp_path), **bearer(token()))) == (401, "unauthorized")


def test_keys_that_cannot_be_read_are_no_fault_of_the_token(tmp_path: Path) -> None:
    def gone() -> bytes:
        raise ConnectionError("gone")

    checked = Tokens(ISSUER, AUDIENCE, "tenant", RemoteKeys(gone))
    api = Api(tmp_path, edge=Edge(checked, Rates(RateSettings(failures=1), Counted()), 1))
    for _ in range(3):
        answer = get(api, **bearer(token()))
        assert code(answer) == (503, TokenKeysUnavailableError.code)
        assert answer.headers["Retry-After"] == "5"
    assert keyed(api).status_code == 200, "nobody was blocked for it"


# limits


def test_sec_08_a_new_forwarded_address_with_each_request_is_one_client(tmp_path: Path) -> None:
    api = opened(tmp_path, proxies=0, per_address=50)
    answers = [get(api, f"10.{number}.1.1") for number in range(200)]
    assert [answer.status_code for answer in answers] == [401] * 50 + [429] * 150
    last = answers[-1]
    assert code(last) == (429, "rate_limited")
    assert 1 <= int(last.headers["Retry-After"]) <= 62


def test_sec_08_what_a_client_writes_before_its_proxy_changes_nothing(tmp_path: Path) -> None:
    api = opened(tmp_path, proxies=1, per_address=50)
    answers = [get(api, f"10.{number}.1.1, {CLIENT}") for number in range(200)]
    assert [answer.status_code for answer in answers] == [401] * 50 + [429] * 150
    assert get(api, OTHER).status_code == 401, "another client of the same proxy"


def test_sec_08_callers_with_a_key_are_limited_by_it_and_not_by_their_address(tmp_path: Path) -> None:
    api = opened(tmp_path, proxies=0, per_key=50, per_address=10)
    for number in range(12):
        get(api, f"10.{number}.2.2")
    assert get(api).status_code == 429
    answers = [keyed(api, client=f"10.{number}.1.1") for number in range(200)]
    assert [answer.status_code for answer in answers] == [200] * 50 + [429] * 150
    assert keyed(api, "acme").status_code == 200, "the neighbour at the same address"
    assert int(answers[-1].headers["Retry-After"]) >= 1


def test_tokens_of_one_subject_share_a_limit(tmp_path: Path) -> None:
    api = opened(tmp_path, per_key=2)
    end = int(time.time()) + 100
    statuses = [get(api, **bearer(token(exp=end + number))).status_code for number in range(3)]
    assert statuses == [200, 200, 429]
    assert get(api, **bearer(token(sub="u-2"))).status_code == 200
    assert keyed(api).status_code == 200


def test_what_the_scope_forbids_counts_too(tmp_path: Path) -> None:
    api = opened(tmp_path, per_key=2)
    writer = bearer(token(scope="jobs:write"))
    assert [get(api, **writer).status_code for _ in range(3)] == [403, 403, 429]


def test_every_answer_says_where_the_caller_stands(tmp_path: Path) -> None:
    api = opened(tmp_path, per_key=2, per_address=9)
    answers = [keyed(api), api.call("GET", "/v1/jobs/no-such-job"), keyed(api), get(api)]
    assert [answer.status_code for answer in answers] == [200, 404, 429, 401]
    told = [(answer.headers["RateLimit-Policy"], answer.headers["RateLimit"]) for answer in answers]
    assert [policy for policy, _ in told] == ['"key";q=2;w=60'] * 3 + ['"address";q=9;w=60']
    assert [re.sub(r";t=[0-9]+$", "", standing) for _, standing in told] == [
        '"key";r=1',
        '"key";r=0',
        '"key";r=0',
        '"address";r=8',
    ]
    body = answers[2].get_json(force=True)
    assert body["context"] == {"policy": "key"}
    assert answers[2].headers["Retry-After"] == answers[2].headers["RateLimit"].rpartition("=")[2]


def test_a_refused_job_leaves_nothing_behind(tmp_path: Path) -> None:
    api = opened(tmp_path, per_key=1)
    assert api.send().status_code == 202
    assert code(api.send()) == (429, "rate_limited")
    assert len(api.jobs) == 1
    assert len(list((tmp_path / "objects").rglob("job.json"))) == 1


def test_notifications_have_a_limit_of_their_own(tmp_path: Path) -> None:
    api = opened(tmp_path, notifications=2, per_key=1, per_address=1)

    def notify(key: str) -> TestResponse:
        return api.client.post("/events/s3", headers={**bearer(key), "X-Forwarded-For": CLIENT}, json={"Records": []})

    assert [notify("token-of-the-bucket").status_code for _ in range(3)] == [204, 204, 429]
    assert [notify("wrong-token-0123456789").status_code for _ in range(2)] == [401, 429]
    assert keyed(api).status_code == 200


def test_the_document_is_not_limited(tmp_path: Path) -> None:
    api = opened(tmp_path, per_address=1, failures=1)
    assert [get(api, path="/openapi.json", **WRONG).status_code for _ in range(5)] == [200] * 5


# blocks


def test_after_many_wrong_keys_an_address_is_blocked_also_with_the_right_one(tmp_path: Path, time: Time) -> None:
    api = opened(tmp_path, failures=3, block_seconds=100)
    assert [code(get(api, **WRONG)) for _ in range(4)] == [(401, "unauthorized")] * 3 + [(429, "rate_limited")]
    blocked = keyed(api)
    assert code(blocked) == (429, "rate_limited"), "whether a guess was right is not told"
    assert blocked.headers["Retry-After"] == "100"
    assert blocked.headers["RateLimit-Policy"] == '"block";q=1;w=100'
    assert keyed(api, client=OTHER).status_code == 200
    time.now += 100
    assert keyed(api).status_code == 200


@pytest.fixture(name="time")
def moved(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr("time.time", made)
    return made


def test_a_right_key_does_not_forgive_the_wrong_ones(tmp_path: Path) -> None:
    api = opened(tmp_path, failures=3)
    assert [get(api, **WRONG).status_code for _ in range(2)] == [401, 401]
    assert keyed(api).status_code == 200
    assert get(api, **WRONG).status_code == 401
    assert keyed(api).status_code == 429


def test_what_is_no_guess_blocks_nobody(tmp_path: Path) -> None:
    api = opened(tmp_path, failures=2)
    for headers in ({}, bearer(token(exp=int(time.time()) - 600)), bearer(token(tenant="nobody"))):
        assert [get(api, **headers).status_code for _ in range(4)] == [401] * 4
    assert keyed(api).status_code == 200


@pytest.mark.parametrize("guess", [bearer("a.b.c"), bearer(token(name="two")), {"Authorization": "Basic eDp5"}])
def test_what_is_a_guess_counts(tmp_path: Path, guess: dict[str, str]) -> None:
    api = opened(tmp_path, failures=2)
    assert [get(api, **guess).status_code for _ in range(3)] == [401, 401, 429]


def test_an_address_of_this_machine_is_a_proxy_and_is_never_blocked(tmp_path: Path) -> None:
    """Behind Knative's queue-proxy everybody comes from 127.0.0.1 until the proxies are counted."""
    api = opened(tmp_path, proxies=0, failures=2)
    assert [get(api, **WRONG).status_code for _ in range(9)] == [401] * 9
    assert keyed(api).status_code == 200


def test_a_notifier_with_wrong_tokens_is_blocked(tmp_path: Path) -> None:
    api = opened(tmp_path, failures=2)
    sent: dict[str, Any] = {"headers": {**WRONG, "X-Forwarded-For": CLIENT}, "json": {}}
    assert [api.client.post("/events/s3", **sent).status_code for _ in range(3)] == [401, 401, 429]

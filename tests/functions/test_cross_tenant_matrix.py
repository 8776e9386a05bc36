"""Every attempt of one tenant at another's: none succeeds, and none tells whether there is anything (SEC-03)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crossing.asking import ROUTES
from tests.crossing.attempts import Attempt, table
from tests.crossing.world import GLOBEX, GLOBEX_KEY, MARK, MISSING, REAL, STRANGER, World, world

TABLE = table()


@pytest.fixture(scope="module")
def two_tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(tmp_path_factory.mktemp("two")) as made:
        yield made


def test_there_are_enough_attempts() -> None:
    assert len(TABLE) >= 500


def test_every_route_that_takes_an_id_is_in_the_table() -> None:
    document = json.loads((Path(__file__).parents[2] / "shared/serving/openapi.json").read_bytes())
    documented = {
        (method.upper(), path.partition("{id}")[2])
        for path, methods in document["paths"].items()
        for method in methods
        if "{id}" in path and method != "parameters"
    }
    assert documented <= set(ROUTES)


def test_what_the_attempts_are_aimed_at_is_there_for_its_owner(two_tenants: World) -> None:
    """Or none of them could tell a good wall from an empty room."""
    for state, job in REAL.jobs.items():
        two_tenants.answers = []
        two_tenants.call("GET", f"/v1/jobs/{job}", GLOBEX_KEY)
        assert (two_tenants.answers[0].status, json.loads(two_tenants.answers[0].body)["status"]) == (200, state)
    two_tenants.answers = []
    two_tenants.call("GET", f"/v1/jobs/{REAL.jobs['succeeded']}/result", GLOBEX_KEY)
    assert two_tenants.answers[0].status == 200
    assert MARK in two_tenants.answers[0].body
    assert any(REAL.name in key for key in two_tenants.belongings())


@pytest.mark.parametrize("attempt", TABLE, ids=lambda attempt: attempt.name)
def test_sec_03_nothing_is_got_changed_or_told(two_tenants: World, attempt: Attempt) -> None:
    before = two_tenants.belongings()
    real, missing, stranger = (two_tenants.see(attempt.do, target) for target in (REAL, MISSING, STRANGER))
    assert two_tenants.belongings() == before, "globex's things were touched"
    assert MARK not in real.text
    assert not [entry for entry in real.published if f"'ce-tenantid', '{GLOBEX}'" in entry], "an event in globex's name"
    assert two_tenants.strays() == set()
    assert real.answers
    assert real.plain(REAL) == missing.plain(MISSING) == stranger.plain(STRANGER), "the answer, or the work, tells"
    assert all(answer.status < 500 for answer in real.answers)

"""Attempts over the HTTP API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from tests.crossing.spellings import BESIDE, CREDENTIALS, IN_PATH, KEYS, PLACES
from tests.crossing.world import ACME, STATES, Target, World

Rows = Iterator[tuple[str, Callable[[World, Target], None]]]
Text = Callable[[Target], str]
Spelling = Callable[[Target, str], str]

ROUTES = (("GET", ""), ("HEAD", ""), ("DELETE", ""), ("GET", "/result"), ("HEAD", "/result"))
"""Method, and what follows the id: those of openapi.json that take one, which a test compares."""
FIELDS = ("source", "target", "reference")

CURSORS: Mapping[str, Text] = {
    "prefix": lambda t: f"tenants/{t.tenant}/",
    "jobs": lambda t: f"tenants/{t.tenant}/jobs/",
    "a job": lambda t: f"tenants/{t.tenant}/jobs/{t.jobs['succeeded']}/",
    "a job's end": lambda t: f"tenants/{t.tenant}/jobs/{t.jobs['succeeded']}/\U0010ffff",
    "an id": lambda t: t.jobs["succeeded"],
    "up and over": lambda t: f"tenants/{ACME}/jobs/../../{t.tenant}/jobs/",
    "a name": lambda t: t.tenant,
    "a record": lambda t: f"tenants/{t.tenant}/jobs/{t.jobs['failed']}/outcome.json",
    "an upload": lambda t: f"tenants/{t.tenant}/inbox/{t.name}.jpg",
    "nul": lambda t: f"tenants/{t.tenant}/\x00",
}
OPTIONS: Mapping[str, Callable[[Target], object]] = {
    "swapper": lambda t: f"{t.tenant}/mesh",
    "enhancer": lambda t: f"../{t.tenant}/gfpgan",
    "upscaler": lambda t: f"tenants/{t.tenant}/model",
    "tenant": lambda t: t.tenant,
    "tenantid": lambda t: t.tenant,
    "priority": lambda t: t.tenant,
    "policy": lambda t: {"licences": t.tenant},
    "webhook": lambda t: {"url": f"https://{t.tenant}.example"},
    "moderation": lambda t: f"off for {t.tenant}",
    "model_tag": lambda t: f"tenant-{t.tenant}",
}
REPEATED: Mapping[str, Text] = {
    "an id": lambda t: t.jobs["succeeded"],
    "a name": lambda t: f"{t.tenant}/{t.name}",
    "tenant and key": lambda t: f"6:{t.tenant}5:{t.name}",
}


def named(field: str, name: str) -> dict[str, object]:
    """A job of acme's own pictures, but for one."""
    asked: dict[str, object] = {"source": "own.jpg", "target": "own.jpg", field: name}
    return asked | ({"options": {"faces": "reference"}} if field == "reference" else {})


def _by_id(world: World, t: Target, method: str, rest: str, spell: Spelling, state: str) -> None:
    world.call(method, f"/v1/jobs/{spell(t, t.jobs[state])}{rest}")


def _beside(world: World, t: Target, method: str, rest: str, headers: Callable[[Target, str], dict[str, str]]) -> None:
    job = t.jobs["succeeded"]
    world.call(method, f"/v1/jobs/{job}{rest}", headers=headers(t, job))


def _with_credential(world: World, t: Target, method: str, path: str, given: Callable[[Target], str | None]) -> None:
    world.call(method, path.format(t.jobs["succeeded"]), headers={"Authorization": given(t)})


def _listed(world: World, t: Target, cursor: Text, status: str) -> None:
    world.call("GET", "/v1/jobs", query_string={"cursor": cursor(t), "limit": "100", "status": status})


def _filtered(world: World, t: Target, parameter: str) -> None:
    world.call("GET", "/v1/jobs", query_string={parameter: t.tenant, "limit": "1"})


def _of_pictures(world: World, t: Target, field: str, place: Text, spell: Spelling) -> None:
    world.call("POST", "/v1/jobs", json=named(field, spell(t, place(t))))


def _with_option(world: World, t: Target, option: str, value: Callable[[Target], object]) -> None:
    world.call("POST", "/v1/jobs", json={"source": "own.jpg", "target": "own.jpg", "options": {option: value(t)}})


def _with_field(world: World, t: Target, field: str) -> None:
    world.call("POST", "/v1/jobs", json={"source": "own.jpg", "target": "own.jpg", field: t.tenant})


def _repeated(world: World, t: Target, key: Text) -> None:
    headers = {"Idempotency-Key": f"{key(t)} {world.fresh()}"}
    world.call("POST", "/v1/jobs", json={"source": "own.jpg", "target": "own.jpg"}, headers=headers)


def _ids() -> Rows:
    for method, rest in ROUTES:
        for spelling, spell in IN_PATH.items():
            for state in STATES if spelling == "plain" else ("succeeded",):
                do = partial(_by_id, method=method, rest=rest, spell=spell, state=state)
                yield f"id: {method}{rest}, {state}, {spelling}", do
        for name, headers in BESIDE.items():
            yield f"header: {method}{rest}, {name}", partial(_beside, method=method, rest=rest, headers=headers)


def _credentials() -> Rows:
    asked = (("GET", "/v1/jobs"), ("GET", "/v1/jobs/{}"), ("DELETE", "/v1/jobs/{}"), ("POST", "/v1/jobs"))
    for name, given in CREDENTIALS.items():
        for method, path in asked:
            do = partial(_with_credential, method=method, path=path, given=given)
            yield f"credential: {method} {path}, {name}", do


def _listings() -> Rows:
    for name, cursor in CURSORS.items():
        for status in ("", "succeeded", "queued", "failed"):
            yield f"cursor: {name}, status {status or 'any'}", partial(_listed, cursor=cursor, status=status)
    for parameter in ("tenant", "tenantid", "prefix", "owner", "user", "job", "id", "search", "namespace"):
        yield f"parameter: {parameter}", partial(_filtered, parameter=parameter)


def _names() -> Rows:
    for field in FIELDS:
        for where, place in PLACES.items():
            for spelling, spell in KEYS.items():
                do = partial(_of_pictures, field=field, place=place, spell=spell)
                yield f"name: {field}, {where}, {spelling}", do


def _bodies() -> Rows:
    for option, value in OPTIONS.items():
        yield f"option: {option}", partial(_with_option, option=option, value=value)
    for field in ("tenant", "tenantid", "owner", "job", "id", "key", "prefix", "store"):
        yield f"field: {field}", partial(_with_field, field=field)
    for name, key in REPEATED.items():
        yield f"idempotency key: {name}", partial(_repeated, key=key)


PARTS = (_ids, _credentials, _listings, _names, _bodies)

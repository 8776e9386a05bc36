"""What a tenant's policy and a key's scopes say is held at every door: the answer names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.events.payloads import Rejection
from shared.jobs import batch
from shared.tenancy import api_keys
from shared.tenancy.directory import Directory, load
from shared.tenancy.tenant import Policy, Tenant
from tests.unit.front.api import Api, code
from tests.unit.jobs.world import KEYS, picture, ping, rejections

NOW = 1_800_000_000.0
INBOX = "tenants/demo/inbox/"
FORBIDDEN: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"stages": []}, {"enhancer": "gfpgan_1.4"}, "enhancer"),
    ({"stages": []}, {"upscaler": "real_esrgan_x4"}, "upscaler"),
    ({"enhancers": ["other"]}, {"enhancer": "gfpgan_1.4"}, "enhancer"),
    ({"swappers": ["other"]}, {}, "swapper"),
    ({"swappers": ["mesh"]}, {"swapper": "other"}, "swapper"),
]


def under(api: Api, **policy: Any) -> Api:
    tenants = {"demo": {"policy": policy}, "acme": {}, "small": {}}
    api.world.tenants = load(json.dumps(tenants), KEYS)
    return api


def named(api: Api, options: dict[str, Any]) -> dict[str, Any]:
    for name, shade in (("s.jpg", 1), ("t.jpg", 2)):
        api.world.put(INBOX + name, picture(shade))
    return {"source": "s.jpg", "target": "t.jpg", "options": options}


@pytest.mark.parametrize(("policy", "options", "field"), FORBIDDEN)
def test_a_request_for_what_is_not_granted_stores_nothing(
    api: Api, policy: dict[str, Any], options: dict[str, Any], field: str
) -> None:
    under(api, **policy)
    before = api.world.store.list("", limit=100).objects
    answer = api.send(options=options)
    assert code(answer) == (403, "not_allowed")
    assert answer.get_json()["context"]["field"] == field
    assert api.world.store.list("", limit=100).objects == before
    assert code(api.call("POST", "/v1/jobs", json=named(api, options))) == (403, "not_allowed")
    assert api.jobs == []


@pytest.mark.parametrize(("policy", "options", "field"), FORBIDDEN)
def test_an_upload_for_what_is_not_granted_is_rejected_once(
    api: Api, policy: dict[str, Any], options: dict[str, Any], field: str
) -> None:
    world = under(api, **policy).world
    key = world.put(INBOX + "a.job.json", json.dumps(named(api, options)).encode())
    first, again = (rejections(world.upload(key)) for _ in range(2))
    assert first == again
    (rejected,) = first
    assert (rejected.code, rejected.status, rejected.context["field"]) == ("not_allowed", 403, field)


def test_a_batch_item_for_what_is_not_granted_is_rejected_alone(api: Api) -> None:
    world = under(api, stages=[]).world
    for picked in ("s.jpg", "t.jpg"):
        world.put(f"{INBOX}nightly/{picked}", picture(3))
    for name, options in (("a", {"enhancer": "gfpgan_1.4"}), ("b", {})):
        body = {"source": "s.jpg", "target": "t.jpg", "options": options}
        world.put(f"{INBOX}nightly/{name}.job.json", json.dumps(body).encode())
    payloads = [entry.payload for entry in batch.run(ping(), world)]
    assert [entry.code for entry in payloads if isinstance(entry, Rejection)] == ["not_allowed"]


def test_all_of_it_is_granted_by_default(api: Api) -> None:
    assert api.send(options={"enhancer": "gfpgan_1.4", "upscaler": "real_esrgan_x4"}).status_code == 202


def test_the_priority_is_never_above_the_tenants(api: Api) -> None:
    under(api, priority="batch", max_batch=9)
    api.send()
    assert api.call("POST", "/v1/jobs", json=named(api, {})).status_code == 202
    made = [job.priority for job in api.jobs]
    assert made == ["batch", "batch"]
    key = api.world.put(INBOX + "b.job.json", json.dumps(named(api, {})).encode())
    assert {entry.payload.priority for entry in api.world.upload(key)} <= {"batch"}  # type: ignore[union-attr]


def scoped(api: Api, *scopes: str, seconds: float | None = None) -> dict[str, str]:
    """The header of a new key of demo with these scopes."""
    key, kept = api_keys.make(NOW, scopes=scopes, seconds=seconds)
    api.world.tenants = Directory({"demo": Tenant("demo", Policy(), keys=(kept,))}, clock=lambda: NOW + 1)
    return {"Authorization": f"Bearer {key}"}


READING = [("GET", "/v1/jobs"), ("GET", "/v1/jobs/{id}"), ("GET", "/v1/jobs/{id}/result")]
WRITING = [("POST", "/v1/jobs"), ("DELETE", "/v1/jobs/{id}")]


@pytest.mark.parametrize(("method", "path"), READING + WRITING)
def test_a_key_may_do_what_its_scopes_say(api: Api, method: str, path: str) -> None:
    job = api.send().get_json()["id"]
    path = path.replace("{id}", job)
    needed, other = ("jobs:read", "jobs:write") if method == "GET" else ("jobs:write", "jobs:read")
    answer = api.call(method, path, headers=scoped(api, other))
    assert code(answer) == (403, "insufficient_scope")
    assert answer.get_json()["context"] == {"scope": needed}
    answer = api.call(method, path, headers=scoped(api, needed))
    assert answer.status_code in (200, 204, 404, 415), "it is let in"


def test_without_the_scope_nobody_learns_whether_a_job_exists(api: Api) -> None:
    job = api.send().get_json()["id"]
    headers = scoped(api, "jobs:write")
    there, not_there = (api.call("GET", f"/v1/jobs/{name}", headers=headers) for name in (job, "no-such-job"))
    assert there.data == not_there.data


def test_an_expired_key_opens_nothing(api: Api) -> None:
    assert code(api.call("GET", "/v1/jobs", headers=scoped(api, "jobs:read", seconds=0.5))) == (401, "unauthorized")

"""POST /v1/jobs with pictures named by address: stored like uploads, refused before a job exists, never told why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from werkzeug.test import TestResponse

from shared.errors import JsonValue
from shared.net.fetch import Bounds, Fetcher
from shared.tenancy.directory import load
from tests.unit.front.api import Api, code
from tests.unit.jobs.world import DATA, KEYS, picture
from tests.unit.net.site import HOST, Internet, internet

CASES = json.loads((DATA / "http" / "ssrf_urls.json").read_bytes())
POLICY = {"fetch_hosts": ["*.example.com", "public.test", "rebind.test", "localhost", "10.0.0.1", "127.1"]}
BY_REFERENCE: JsonValue = {"faces": "reference"}
TENANTS = json.dumps({"demo": {"policy": POLICY}, "acme": {}, "small": {"policy": {**POLICY, "max_bytes": 5000}}})


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def web(authority: trustme.CA) -> Iterator[Internet]:
    with internet(authority, HOST) as site:
        yield site


@pytest.fixture
def api(tmp_path: Path, web: Internet) -> Api:
    made = Api(tmp_path, fetcher=Fetcher(Bounds(total_bytes=100_000), web.way))
    made.world.tenants = load(TENANTS, KEYS)
    return made


def post(api: Api, source: JsonValue, target: JsonValue, tenant: str = "demo", **more: JsonValue) -> TestResponse:
    headers = {"Idempotency-Key": str(more.pop("key"))} if "key" in more else {}
    return api.call("POST", "/v1/jobs", tenant, json={"source": source, "target": target, **more}, headers=headers)


def named(url: str) -> JsonValue:
    return {"url": url}


def test_addresses_and_names_mix(api: Api, web: Internet) -> None:
    api.world.put("tenants/demo/inbox/t.jpg", picture(2))
    first, second = web.serve("/1.jpg", picture(1)), web.serve("/3.jpg", picture(3)) + "?x"
    response = post(
        api, [named(first), named(second), named(first)], "t.jpg", reference=named(first), options=BY_REFERENCE
    )
    assert response.status_code == 202, response.data
    (job,) = api.jobs
    assert [api.world.store.get(ref.key)[0] for ref in job.source] == [picture(1), picture(3), picture(1)]
    assert job.source[0].key.startswith(f"tenants/demo/jobs/{job.job}/input/")
    assert api.world.store.head(job.source[0].key).metadata["wakeswap-job"] == job.job
    assert job.source[0].content_type == "image/jpeg"
    assert job.reference == job.source[0]
    assert job.target.key == "tenants/demo/inbox/t.jpg"
    assert len(web.server.asked) == 2, "each address is asked once"
    stored = b"".join(api.world.store.get(entry.key)[0] for entry in api.world.store.list("tenants/").objects)
    assert HOST.encode() not in stored, "addresses may hold a signature: they are kept nowhere"


def test_two_addresses_of_one_picture(api: Api, web: Internet) -> None:
    same = [named(web.serve(path, picture(1))) for path in ("/a", "/b")]
    assert post(api, [*same], same[0]).status_code == 202
    assert len({ref.key for ref in api.jobs[0].source}) == 1


def test_a_repeat_is_told_by_what_the_address_gives(api: Api, web: Internet) -> None:
    url, key = named(web.serve("/1.jpg", picture(1))), "order-1"
    first = post(api, url, url, key=key).get_json()["id"]
    moved = named(web.serve("/moved.jpg", picture(1)))
    assert post(api, moved, url, key=key).get_json()["id"] == first
    assert api.send(picture(1), target=picture(1), headers={"Idempotency-Key": key}).get_json()["id"] == first
    web.serve("/1.jpg", picture(9))
    assert code(post(api, url, url, key=key)) == (422, "idempotency_key_reused")


@pytest.mark.parametrize("field", ["source", "target", "reference"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["why"])
def test_sec_04_refused_alike_at_every_place(api: Api, web: Internet, case: dict[str, str], field: str) -> None:
    good = named(web.serve("/1.jpg", picture(1)))
    web.names |= {"public.test": iter([["10.0.0.1"]] * 9), "rebind.test": iter([["127.0.0.1"]] * 9)}
    body = {"source": good, "target": good, field: named(case["url"])}
    if field == "reference":
        body["options"] = BY_REFERENCE
    response = api.call("POST", "/v1/jobs", json=body)
    assert code(response) == (422, "url_not_allowed")
    assert set(response.get_json(force=True)) == {"type", "title", "status", "detail", "code"}
    assert response.get_json(force=True)["detail"] == "The address is not allowed"
    assert (web.dialled, web.resolved, api.broker.events) == ([], [], [])
    assert api.world.store.list("tenants/").objects == ()


def test_sec_04_redirects_and_names_that_lead_inside(api: Api, web: Internet) -> None:
    web.names["inside.example.com"] = iter([["169.254.169.254"]] * 9)
    for url in ("https://inside.example.com/", web.serve("/go", status=302, Location="https://inside.example.com/")):
        response = post(api, named(url), named(url))
        assert code(response) == (422, "url_not_allowed")
        assert b"169.254" not in response.data
    assert all(ip != "169.254.169.254" for ip, _ in web.dialled)


def test_a_tenant_without_hosts_fetches_nothing(api: Api, web: Internet) -> None:
    url = named(web.serve("/1.jpg", picture(1)))
    assert code(post(api, url, url, tenant="acme")) == (422, "url_not_allowed")
    assert web.resolved == []


def test_what_comes_is_examined_like_an_upload(api: Api, web: Internet) -> None:
    good = named(web.serve("/1.jpg", picture(1)))

    def outcome(path: str, body: bytes, tenant: str = "demo", **more: int) -> tuple[int, str]:
        return code(post(api, named(web.serve(path, body, **more)), good, tenant=tenant))  # type: ignore[arg-type]

    assert outcome("/page", b"<html></html>", Content_Type=0) == (415, "unsupported_media_type")
    assert outcome("/bomb.png", (DATA / "image" / "bomb_20000x20000.png").read_bytes()) == (413, "image_too_large")
    assert outcome("/empty", b"") == (422, "media_empty")
    assert outcome("/big", picture(1) + bytes(5000), tenant="small") == (413, "image_too_large")
    assert outcome("/gone", b"", status=404) == (422, "fetch_failed")
    assert outcome("/busy", b"", status=503) == (503, "fetch_unavailable")
    assert outcome("/total", picture(1) + bytes(100_000)) == (413, "payload_too_large")
    assert api.broker.events == []
    assert api.world.store.list("tenants/").objects == ()


@pytest.mark.parametrize("wrong", [{}, {"url": 1}, {"url": ""}, {"url": "https://x.example.com/", "more": 1}, [[]], 7])
def test_other_shapes_are_no_addresses(api: Api, wrong: JsonValue) -> None:
    assert code(post(api, wrong, "t.jpg")) == (400, "invalid_request")


@pytest.mark.parametrize("text", ["https://pictures.example.com/1.jpg", "http://10.0.0.1/"])
def test_a_text_is_always_the_name_of_an_object(api: Api, web: Internet, text: str) -> None:
    assert code(post(api, text, text)) == (422, "invalid_key")
    assert web.resolved == []


def test_a_manifest_names_objects_only(api: Api, web: Internet) -> None:
    url = named(web.serve("/1.jpg", picture(1)))
    key = "tenants/demo/inbox/x.job.json"
    api.world.put(key, json.dumps({"source": url, "target": url}).encode())
    (accepted,) = api.world.upload(key)
    assert getattr(accepted.payload, "code", "") == "invalid_manifest"
    assert web.resolved == []


def test_options_are_checked_before_anything_is_fetched(api: Api, web: Internet) -> None:
    url = named(web.serve("/1.jpg", picture(1)))
    assert code(post(api, url, url, options={"quality": 0})) == (422, "invalid_option")
    assert web.resolved == []


def test_sec_06_an_address_with_a_signature_shows_nowhere(
    api: Api, web: Internet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    url = web.serve("/1.jpg", status=403) + "?X-Amz-Signature=0123456789&X-Amz-Security-Token=abcdefgh"
    response = post(api, named(url), named(url))
    assert code(response) == (422, "fetch_failed")
    assert b"0123456789" not in response.data
    assert "0123456789" not in caplog.text

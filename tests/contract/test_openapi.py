"""/openapi.json says what the routes do: same paths, same methods, and real answers fit its schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError  # type: ignore[import-untyped]
from openapi_spec_validator import validate

from shared import records
from shared.edge_settings import RateSettings
from shared.events.choices import Options
from shared.events.payloads import Rejection
from shared.jobs import views
from shared.serving import front
from shared.serving.edge import Edge
from shared.serving.rates import Rates
from tests.unit.front.api import TOKEN, Api
from tests.unit.jobs.world import Counted, event_file

DOCUMENT: dict[str, Any] = json.loads(front.document())


def check(schema: str, value: object) -> None:
    root = {"$ref": f"#/components/schemas/{schema}", "components": DOCUMENT["components"]}
    Draft202012Validator(root).validate(value)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def test_document_is_valid_openapi_3_1() -> None:
    validate(DOCUMENT)
    assert DOCUMENT["openapi"].startswith("3.1")


def test_every_route_is_described_and_nothing_else(api: Api) -> None:
    described = {
        (path, method.upper())
        for path, operations in DOCUMENT["paths"].items()
        for method in operations
        if method != "parameters"
    }
    served = {
        (re.sub(r"<(?:\w+:)?job_id>", "{id}", rule.rule), method)
        for rule in api.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert described == served


def test_what_is_served_is_the_document(api: Api) -> None:
    response = api.client.get("/openapi.json")
    assert (response.status_code, response.content_type) == (200, "application/json")
    assert response.get_json() == DOCUMENT


def described(path: str, method: str, status: int) -> Any:
    """The response object of an operation, references followed."""
    response = DOCUMENT["paths"][path][method]["responses"][str(status)]
    if "$ref" in response:
        response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
    return response


def test_every_operation_takes_keys_and_tokens_and_says_who_is_refused(api: Api) -> None:
    assert DOCUMENT["security"] == [{"key": []}, {"token": []}]
    assert DOCUMENT["components"]["securitySchemes"]["token"]["bearerFormat"] == "JWT"
    for path, operations in DOCUMENT["paths"].items():
        for method in set(operations) - {"parameters"} if path.startswith("/v1/") else ():
            assert "security" not in operations[method], "the document's own holds"
            for status in (401, 403, 429):
                assert described(path, method, status)["content"].keys() == {"application/problem+json"}


def test_limits_are_told_as_described(tmp_path: Path) -> None:
    api = Api(tmp_path, edge=Edge(rates=Rates(RateSettings(per_key=3, per_address=1), Counted())))
    answers = [api.call("GET", "/v1/jobs"), api.send(), api.call("DELETE", "/v1/jobs/x"), api.call("GET", "/v1/jobs")]
    answers += [api.client.get("/v1/jobs"), api.client.get("/v1/jobs")]
    assert [answer.status_code for answer in answers] == [200, 202, 404, 429, 401, 429]
    for answer in answers:
        assert {"RateLimit", "RateLimit-Policy"} <= set(answer.headers.keys())
        method = answer.request.method.lower()
        if answer.status_code != 404:
            headers = set(described("/v1/jobs", method, answer.status_code)["headers"])
            assert {"RateLimit", "RateLimit-Policy"} <= headers
            assert ("Retry-After" in answer.headers) == ("Retry-After" in headers)
        else:
            check("Problem", answer.get_json(force=True))


def test_options_are_the_payloads(api: Api) -> None:
    described = DOCUMENT["components"]["schemas"]["Options"]["properties"]
    assert {name: entry["default"] for name, entry in described.items()} == records.write(Options())
    assert DOCUMENT["components"]["schemas"]["Status"]["enum"] == list(views.STATUSES)


def test_answers_fit_their_schemas(api: Api) -> None:
    job = api.send(options={"faces": 1}).get_json()
    check("Job", job)
    work = {"started": 1.0, "finished": 2.0, "woke": 0.5}
    api.world.store.put(f"tenants/demo/jobs/{job['id']}/swap/work.00.json", json.dumps(work).encode())
    api.finish(job["id"])
    done = api.call("GET", f"/v1/jobs/{job['id']}").get_json()
    assert done["result"]["faces"] == []
    check("Job", done)
    other = api.send().get_json()["id"]
    api.end(other, Rejection(other, "detect", "no_face_in_source", "No face.", 422, {"faces": 0}))
    page = api.call("GET", "/v1/jobs").get_json()
    assert len(page["jobs"]) == 2
    check("Page", page)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("post", "/v1/jobs", None, 415),
        ("post", "/v1/jobs", {}, 400),
        ("post", "/v1/jobs", {"source": "a", "target": "b"}, 422),
        ("get", "/v1/jobs?limit=0", None, 400),
        ("get", "/v1/jobs/11111111-2222-4333-8444-555555555555", None, 404),
        ("delete", "/v1/jobs/11111111-2222-4333-8444-555555555555", None, 404),
        ("get", "/v1/jobs/11111111-2222-4333-8444-555555555555/result", None, 404),
        ("post", "/events/s3", event_file("sns_subscription_confirmation.json"), 403),
        ("post", "/events/s3", 7, 400),
    ],
)
def test_every_refusal_is_described(api: Api, method: str, path: str, body: object, status: int) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"} if path == "/events/s3" else {}
    more: dict[str, Any] = {} if body is None else {"json": body}
    response = api.call(method.upper(), path, headers=headers, **more)
    assert response.status_code == status
    check("Problem", response.get_json(force=True))
    template = re.sub(r"/1111[^/?]*", "/{id}", path.partition("?")[0])
    assert str(status) in DOCUMENT["paths"][template][method]["responses"]
    assert api.client.open(path, method=method).status_code == 401


@pytest.mark.parametrize(
    ("picture", "fits"),
    [
        ("a.jpg", True),
        ({"url": "https://pictures.example.com/a.jpg"}, True),
        ("", False),
        ({"url": "ftp://10.0.0.1/a.jpg"}, False),
        ({"url": "https://x/", "more": 1}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("field", ["source", "target", "reference"])
def test_a_picture_is_named_by_object_or_by_address(field: str, picture: object, fits: bool) -> None:
    for given in (picture, [picture]) if field == "source" else (picture,):
        job = {"source": "s.jpg", "target": "t.jpg", field: given}
        if fits:
            check("NamedJob", job)
        else:
            with pytest.raises(ValidationError):
                check("NamedJob", job)

"""A reference picture on the HTTP API: multipart and named, part of the request's identity, refused where it is not."""

from __future__ import annotations

import io
import json

import pytest

from shared.events.choices import Options
from shared.events.payloads import Result, Size
from tests.unit.front.api import Api, code
from tests.unit.jobs.world import picture

WANTED = {"faces": "reference", "similarity": 0.5}


def parts(reference: bytes | None, **options: object) -> dict[str, object]:
    data: dict[str, object] = {
        name: (io.BytesIO(picture(n)), f"{name}.jpg") for n, name in enumerate(("source", "target"))
    }
    if reference is not None:
        data["reference"] = (io.BytesIO(reference), "r.jpg")
    return {"data": {**data, "options": json.dumps(options)}, "content_type": "multipart/form-data"}


def test_face_02_a_reference_as_a_part(api: Api) -> None:
    assert api.call("POST", "/v1/jobs", **parts(picture(3), **WANTED)).status_code == 202
    (job,) = api.jobs
    assert job.options == Options(faces="reference", similarity=0.5)
    assert job.reference is not None
    assert api.world.store.get(job.reference.key)[0] == picture(3)
    assert job.reference.key.startswith(f"tenants/demo/jobs/{job.job}/input/reference-")


def test_face_02_a_reference_by_name(api: Api) -> None:
    for name, number in (("a", 1), ("b", 2), ("who", 3)):
        api.world.put(f"tenants/demo/inbox/{name}.jpg", picture(number))
    body = {"source": "a.jpg", "target": "b.jpg", "reference": "who.jpg", "options": WANTED}
    assert api.call("POST", "/v1/jobs", json=body).status_code == 202
    (job,) = api.jobs
    assert job.reference is not None
    assert job.reference.key == "tenants/demo/inbox/who.jpg"


def test_another_reference_is_another_request(api: Api) -> None:
    headers = {"Idempotency-Key": "k-1"}
    first = api.call("POST", "/v1/jobs", headers=headers, **parts(picture(3), **WANTED))
    again = api.call("POST", "/v1/jobs", headers=headers, **parts(picture(3), **WANTED))
    assert first.get_json()["id"] == again.get_json()["id"]
    other = api.call("POST", "/v1/jobs", headers=headers, **parts(picture(4), **WANTED))
    assert code(other) == (422, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("reference", "options", "field"),
    [(None, WANTED, "faces"), (3, {}, "reference"), (None, {"mapping": [{"source": 1, "target": 0}]}, "mapping")],
)
def test_options_that_do_not_go_with_the_pictures(
    api: Api, reference: int | None, options: dict[str, object], field: str
) -> None:
    response = api.call("POST", "/v1/jobs", **parts(None if reference is None else picture(reference), **options))
    assert code(response) == (422, "invalid_option")
    assert response.get_json(force=True)["context"] == {"field": field}
    assert api.broker.events == []


def test_one_reference_and_a_picture(api: Api) -> None:
    twice = parts(picture(3), **WANTED)
    twice["data"] = {**twice["data"], "reference": [(io.BytesIO(picture(3)), "r"), (io.BytesIO(picture(4)), "r")]}  # type: ignore[dict-item]
    assert code(api.call("POST", "/v1/jobs", **twice)) == (400, "invalid_request")
    assert code(api.call("POST", "/v1/jobs", **parts(b"<html>", **WANTED))) == (415, "unsupported_media_type")
    assert api.broker.events == []


def test_what_a_result_was_reduced_from_is_shown(api: Api) -> None:
    job = api.send().get_json()["id"]
    api.finish(job)
    assert "resized_from" not in api.call("GET", f"/v1/jobs/{job}").get_json()["result"]
    other = api.send().get_json()["id"]
    image = api.jobs[0].target
    api.end(
        other, Result(other, image, 1280, 720, (), "file:///x", "2030-01-01T00:00:00Z", resized_from=Size(3840, 2160))
    )
    shown = api.call("GET", f"/v1/jobs/{other}").get_json()["result"]
    assert shown["resized_from"] == {"width": 3840, "height": 2160}


def test_what_a_source_shows_too_much_of_is_told(api: Api) -> None:
    job, image = api.send().get_json()["id"], api.jobs[0].target
    result = Result(job, image, 64, 64, (), "file:///x", "2030-01-01T00:00:00Z", warnings=("source_small",))
    api.end(job, result)
    assert api.call("GET", f"/v1/jobs/{job}").get_json()["result"]["warnings"] == ["source_small"]

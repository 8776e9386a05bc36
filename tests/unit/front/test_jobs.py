"""The other routes of a job: show, result, cancel, list; and nobody else's job is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.events.payloads import Failure, Job, Rejection
from shared.jobs import records
from shared.serving import front, web
from shared.storage.local import LocalStore
from tests.unit.front.api import Api, code
from tests.unit.jobs.world import World, picture

RANDOM_ID = "11111111-2222-4333-8444-555555555555"


def new(api: Api, tenant: str = "demo") -> str:
    return str(api.send(tenant=tenant).get_json()["id"])


def show(api: Api, job: str) -> Any:
    return api.call("GET", f"/v1/jobs/{job}").get_json()


def work(api: Api, job: str, stage: str, **times: float) -> None:
    record = {"owner": "x", "expires": 0.0, "finished": 0.0, "woke": 0.0, **times}
    api.world.store.put(f"tenants/demo/jobs/{job}/{stage}/work.0123abcd.json", json.dumps(record).encode())


def test_status_is_told_from_the_records(api: Api) -> None:
    job = new(api)
    assert show(api, job)["status"] == "queued"
    work(api, job, "detect", started=20.5)
    work(api, job, "moderate", started=10.0, finished=11.25, woke=2.5)
    body = show(api, job)
    assert body["status"] == "running"
    assert body["stages"] == [
        {
            "stage": "moderate",
            "state": "done",
            "started": "1970-01-01T00:00:10.000Z",
            "finished": "1970-01-01T00:00:11.250Z",
            "wake_seconds": 2.5,
            "work_seconds": 1.25,
        },
        {"stage": "detect", "state": "working", "started": "1970-01-01T00:00:20.500Z", "wake_seconds": 0.0},
    ]
    api.finish(job)
    assert show(api, job)["status"] == "succeeded"
    assert show(api, job)["result"]["size"] == len(picture(77))


def test_error_code_is_shown(api: Api) -> None:
    rejected, failed = new(api), new(api)
    api.end(rejected, Rejection(rejected, "detect", "no_face_in_source", "No face.", 422))
    api.end(failed, Failure(failed, "swap", "model_invalid", "Kept.", "e-1"))
    assert show(api, rejected)["status"] == "rejected"
    assert show(api, rejected)["error"]["code"] == "no_face_in_source"
    assert show(api, failed)["status"] == "failed"
    assert show(api, failed)["error"] == {
        "code": "model_invalid",
        "detail": "Kept.",
        "stage": "swap",
        "status": 500,
        "context": {},
    }


def test_upload_refused_before_it_was_a_job_can_be_seen(api: Api) -> None:
    api.end(RANDOM_ID, Rejection(RANDOM_ID, "intake", "invalid_manifest", "Bad.", 422))
    assert show(api, RANDOM_ID)["status"] == "rejected"


def test_damaged_record_does_not_hide_the_job(api: Api) -> None:
    job = new(api)
    api.world.store.put(f"tenants/demo/jobs/{job}/detect/work.0123abcd.json", b"{broken")
    assert show(api, job)["status"] == "queued"


BROKEN_ENDS = [
    b"",
    b"\x00" * 40,
    b"[]",
    b'{"type": "dev.wakeswap.publish.completed.v1", "cause": "c", "data": {}}',
    b'{"type": "dev.wakeswap.detect.rejected.v1", "cause": "c", "data": {"code": 5}}',
    b'{"type": "nonsense", "cause": "c", "data": {}}',
]


@pytest.mark.parametrize("data", BROKEN_ENDS)
def test_end_that_cannot_be_read_is_a_failure_everywhere(api: Api, data: bytes) -> None:
    job = str(api.send(headers={"Idempotency-Key": "k"}).get_json()["id"])
    api.world.store.put(f"tenants/demo/jobs/{job}/outcome.json", data)
    assert show(api, job)["status"] == "failed"
    assert show(api, job)["error"]["code"] == "record_damaged"
    assert code(api.call("GET", f"/v1/jobs/{job}/result")) == (404, "not_found")
    assert [entry["status"] for entry in api.call("GET", "/v1/jobs").get_json()["jobs"]] == ["failed"]
    assert code(api.send(headers={"Idempotency-Key": "k", "Prefer": "wait=9"})) == (500, "record_damaged")
    assert api.call("DELETE", f"/v1/jobs/{job}").status_code == 204


@pytest.mark.parametrize("data", [b"", b"\x00" * 40, b"{}", b'{"job": 5}'])
def test_job_record_that_cannot_be_read_is_mended_by_the_repeat(api: Api, data: bytes) -> None:
    job = str(api.send(headers={"Idempotency-Key": "k"}).get_json()["id"])
    whole = show(api, job)
    api.world.store.put(f"tenants/demo/jobs/{job}/job.json", data)
    assert show(api, job) == {"id": job, "status": "queued", "href": f"/v1/jobs/{job}", "stages": []}
    assert api.send(headers={"Idempotency-Key": "k"}).status_code == 202
    assert show(api, job) == whole


def test_result_is_streamed(api: Api) -> None:
    job = new(api)
    assert code(api.call("GET", f"/v1/jobs/{job}/result")) == (404, "not_found")
    data = api.finish(job)
    response = api.call("GET", f"/v1/jobs/{job}/result")
    assert (response.status_code, response.data, response.content_type) == (200, data, "image/jpeg")
    assert response.headers["Content-Length"] == str(len(data))
    api.world.store.delete(f"tenants/demo/results/{job}.jpg")
    assert code(api.call("GET", f"/v1/jobs/{job}/result")) == (404, "not_found")


class Linking(LocalStore):
    """A store with links that everyone can follow, as S3 has them."""

    def link(self, key: str, seconds: int, *, filename: str = "") -> str:
        return f"https://bucket.example/{key}?expires={seconds}&name={filename}"


def test_result_is_a_link_where_the_store_has_one(api: Api, tmp_path: Path) -> None:
    api.world.store = Linking(tmp_path / "objects")
    job = new(api)
    api.finish(job)
    response = api.call("GET", f"/v1/jobs/{job}/result")
    assert response.status_code == 307
    assert response.headers["Location"].endswith(f"/tenants/demo/results/{job}.jpg?expires=3600&name={job}.jpg")


def test_cancel_deletes_what_is_ours_and_keeps_what_is_the_tenants(api: Api) -> None:
    store = api.world.store
    upload = api.world.put("tenants/demo/inbox/a.jpg")
    job = str(api.call("POST", "/v1/jobs", json={"source": upload, "target": upload}).get_json()["id"])
    sent = new(api)
    for entry in (job, sent):
        store.put(f"tenants/demo/jobs/{entry}/detect/landmarks.npz", b"x")
        work(api, entry, "detect", started=1.0, finished=2.0)
        api.finish(entry)
        assert api.call("DELETE", f"/v1/jobs/{entry}").status_code == 204
        assert api.call("DELETE", f"/v1/jobs/{entry}").status_code == 204
        assert show(api, entry)["status"] == "cancelled"
        assert "result" not in show(api, entry)
        left = [info.key.rpartition("/")[2] for info in store.list(f"tenants/demo/jobs/{entry}/").objects]
        assert left == ["cancelled.json", "work.0123abcd.json", "job.json", "outcome.json"]
    assert store.list("tenants/demo/results/").objects == ()
    assert store.head(upload).size


def test_sec_03_a_foreign_job_is_not_there(api: Api) -> None:
    foreign = new(api, "acme")
    api.finish(foreign, "acme")
    for method, rest in (("GET", ""), ("DELETE", ""), ("GET", "/result")):
        answers = []
        for job in (foreign, RANDOM_ID, "not-an-id!", "x"):
            response = api.call(method, f"/v1/jobs/{job}{rest}")
            assert code(response) == (404, "not_found")
            answers.append((response.data, sorted(response.headers.items())))
        assert all(answer == answers[0] for answer in answers)
        assert api.client.open(f"/v1/jobs/{foreign}{rest}", method=method).status_code == 401
    assert api.call("GET", "/v1/jobs").get_json() == {"jobs": [], "cursor": ""}
    assert api.call("GET", f"/v1/jobs/{foreign}", "acme").status_code == 200


def test_list_pages_and_filters(api: Api) -> None:
    ids = sorted(new(api) for _ in range(7))
    api.finish(ids[2])
    api.finish(ids[5])
    seen: list[str] = []
    cursor = ""
    while True:
        page = api.call("GET", "/v1/jobs", query_string={"limit": 3, "cursor": cursor}).get_json()
        seen += [job["id"] for job in page["jobs"]]
        cursor = page["cursor"]
        if not cursor:
            break
        assert len(page["jobs"]) == 3
    assert seen == ids
    done = api.call("GET", "/v1/jobs?status=succeeded").get_json()["jobs"]
    assert [job["id"] for job in done] == [ids[2], ids[5]]


@pytest.mark.parametrize("query", ["status=done", "limit=0", "limit=101", "limit=x", "limit=-1"])
def test_list_refuses_what_it_does_not_know(api: Api, query: str) -> None:
    assert code(api.call("GET", f"/v1/jobs?{query}")) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/nothing", 404), ("PUT", "/v1/jobs", 405), ("POST", "/v1/jobs/x", 405), ("GET", "/events/s3", 405)],
)
def test_every_error_is_a_problem(api: Api, method: str, path: str, status: int) -> None:
    assert code(api.call(method, path))[0] == status


def test_bug_is_a_problem_too(tmp_path: Path) -> None:
    world = World(LocalStore(tmp_path))
    app = web.build(1000)

    def broken(accepted: object, traceparent: str) -> None:
        raise KeyError("secret detail")

    front.mount(app, front.Front(lambda: world, broken, "", 1000, lambda: False))
    key = world.put("tenants/demo/inbox/a.jpg")
    headers = {"Authorization": "Bearer key-of-demo-0123456789"}
    response = app.test_client().post("/v1/jobs", json={"source": key, "target": key}, headers=headers)
    assert code(response) == (500, "internal_error")
    assert b"secret" not in response.data


def test_record_of_two_writers_is_the_first_ones(api: Api) -> None:
    job = new(api)
    known = records.find(api.world.store, "demo", job)
    assert known is not None
    other = records.JobRecord(Job(job, (), known.job.target), request="other")
    assert records.create(api.world.store, "demo", other) == known


def test_whoever_waits_gets_the_answer_a_twentieth_late_at_most() -> None:
    assert [front.pause(waited) for waited in (0.0, 1.0, 4.0, 10.0, 60.0)] == [0.05, 0.05, 0.2, 0.5, 0.5]

"""POST /v1/jobs: what starts a job, what is refused before one exists, repeats, and waiting."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from shared.events.choices import Options
from shared.events.payloads import Failure, Rejection
from shared.jobs import records
from tests.unit.front.api import Api, code
from tests.unit.jobs.world import DATA, picture

IMAGES = DATA / "image"


def test_multipart(api: Api) -> None:
    response = api.send(picture(1), picture(3), options={"faces": "one", "format": "png"})
    assert response.status_code == 202
    body = response.get_json()
    assert response.headers["Location"] == body["href"] == f"/v1/jobs/{body['id']}"
    assert (body["status"], body["origin"], body["options"]["format"]) == ("queued", "http", "png")
    (job,) = api.jobs
    assert api.broker.events[0].tenant == "demo"
    assert (job.job, job.options) == (body["id"], Options(faces="one", format="png"))
    assert [api.world.store.get(ref.key)[0] for ref in job.source] == [picture(1), picture(3)]
    assert job.target.digest == hashlib.sha256(picture(2)).hexdigest()
    assert job.target.key.startswith(f"tenants/demo/jobs/{job.job}/input/")
    assert api.world.store.head(job.target.key).metadata["wakeswap-job"] == job.job


def test_named_objects(api: Api) -> None:
    api.world.put("tenants/demo/inbox/a.jpg", picture(1))
    full = api.world.put("tenants/demo/templates/x/target.jpg", picture(2))
    response = api.call("POST", "/v1/jobs", json={"source": "a.jpg", "target": full, "options": {"quality": 80}})
    assert response.status_code == 202
    (job,) = api.jobs
    assert [job.source[0].key, job.target.key] == ["tenants/demo/inbox/a.jpg", full]
    assert job.options.quality == 80


def test_named_objects_refused(api: Api) -> None:
    api.world.put("tenants/acme/inbox/a.jpg")
    ours = api.world.put("tenants/demo/inbox/a.jpg")

    def post(body: object) -> tuple[int, str]:
        return code(api.call("POST", "/v1/jobs", json=body))

    assert post({"source": "tenants/acme/inbox/a.jpg", "target": ours}) == (422, "invalid_key")
    assert post({"source": "../../acme/inbox/a.jpg", "target": ours}) == (422, "invalid_key")
    assert post({"source": "gone.jpg", "target": ours}) == (422, "object_gone")
    assert post({"source": ours}) == (400, "invalid_request")
    assert post({"source": [ours] * 9, "target": ours}) == (400, "invalid_request")
    assert post([]) == (400, "invalid_request")
    assert api.broker.events == []


def test_keys_are_checked(api: Api) -> None:
    for header in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic key-of-demo-0123456789"},
        {"Authorization": ""},
    ):
        response = api.client.post("/v1/jobs", headers=header)
        assert code(response) == (401, "unauthorized")
        assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"target": (io.BytesIO(b"x"), "t")}, "source"),
        ({"source": (io.BytesIO(b"x"), "s")}, "target"),
        ({"source": "text", "target": (io.BytesIO(b"x"), "t")}, "source"),
        ({"sources": (io.BytesIO(b"x"), "s"), "target": (io.BytesIO(b"x"), "t")}, "sources"),
    ],
)
def test_parts_are_named(api: Api, data: dict[str, object], field: str) -> None:
    response = api.call("POST", "/v1/jobs", data=data, content_type="multipart/form-data")
    assert code(response) == (400, "invalid_request")
    assert response.get_json(force=True)["context"] == {"field": field}


def test_a_part_without_a_name_is_refused(api: Api) -> None:
    """Found by fuzzing: werkzeug hands such a part on under the name None."""
    head = "--b\r\nContent-Disposition: ; x=form-data; filename=t\r\n\r\nx\r\n--b--\r\n"
    response = api.call("POST", "/v1/jobs", data=head.encode(), content_type="multipart/form-data; boundary=b")
    assert code(response) == (400, "invalid_request")
    assert response.get_json(force=True)["context"] == {"field": ""}


def test_other_content_types(api: Api) -> None:
    assert code(api.call("POST", "/v1/jobs", data=b"x", content_type="text/plain")) == (415, "unsupported_content_type")
    assert code(api.call("POST", "/v1/jobs", data=b"{", content_type="application/json")) == (400, "invalid_request")
    assert code(api.call("POST", "/v1/jobs", data=b"x", content_type="multipart/form-data"))[0] == 400


@pytest.mark.parametrize("options", [{"quality": 0}, {"unknown": 1}, [], "x"])
def test_options_are_checked(api: Api, options: object) -> None:
    assert code(api.send(options=options)) == (422, "invalid_option")
    assert api.broker.events == []


REFUSED = [
    ("gif_screen_65535.gif", 413, "image_too_large"),
    ("bomb_20000x20000.png", 413, "image_too_large"),
    ("bomb_12000x12000_warn_only.png", 413, "image_too_large"),
    ("zero_bytes.jpg", 422, "media_empty"),
    ("html_named.jpg", 415, "unsupported_media_type"),
    ("eps_named.jpg", 415, "unsupported_media_type"),
    ("svg_named.png", 415, "unsupported_media_type"),
    ("remote_ref.svg", 415, "unsupported_media_type"),
    ("one_pixel.png", 422, "image_too_small"),
    ("strip_8000x1.png", 422, "image_too_small"),
]


@pytest.mark.parametrize(("name", "status", "expected"), REFUSED)
def test_img_09_img_10_refused_before_a_job_exists(api: Api, name: str, status: int, expected: str) -> None:
    data = (IMAGES / name).read_bytes()
    assert code(api.send(data)) == (status, expected)
    assert code(api.send(target=data)) == (status, expected)
    assert api.broker.events == []
    assert api.world.store.list("tenants/").objects == ()


@pytest.mark.parametrize("name", ["anim_3frames.gif", "anim_3frames_apng.png", "anim_3frames.webp"])
def test_img_06_an_animation_is_a_video_as_target_and_nothing_as_source(api: Api, name: str) -> None:
    data = (IMAGES / name).read_bytes()
    assert code(api.send(data)) == (415, "animation_unsupported")
    assert api.send(target=data).status_code == 202
    assert [job.media for job in api.jobs] == ["video"]


LEGAL = [
    *("png_named.jpg", "webp_named.png", "polyglot_jpeg_zip.jpg", "polyglot_gif_html.gif"),
    *(path.name for path in sorted(IMAGES.glob("exif_orientation_*.jpg"))),
    *("cmyk_adobe.jpg", "ycck_adobe.jpg", "mpo_two_frames.jpg", "progressive.jpg", "gray.jpg", "bilevel.png"),
    *("rgba_alpha.png", "palette_trns_bytes.png", "palette_trns_index.png", "gray_alpha_LA.png"),
]


@pytest.mark.parametrize("name", LEGAL)
def test_img_01_img_03_img_05_img_10_judged_by_content(api: Api, name: str) -> None:
    data = (IMAGES / name).read_bytes()
    assert api.send(data).status_code == 202
    assert api.send(target=data).status_code == 202
    assert len(api.jobs) == 2


@pytest.mark.parametrize("name", ["truncated_60pct.jpg", "truncated_50pct.png", "png_bad_crc.png", "png_ztxt_60mb.png"])
def test_img_08_damaged_files_never_make_a_server_error(api: Api, name: str) -> None:
    """What the headers do not show is found by the stages that decode."""
    response = api.send((IMAGES / name).read_bytes())
    assert response.status_code in (202, 413, 422)
    assert response.status_code == 202 or code(response)[1] in ("media_truncated", "media_corrupt", "image_too_small")


def test_tenants_own_limits(api: Api) -> None:
    assert code(api.send(picture(1, side=128), tenant="small")) == (413, "image_too_large")
    assert code(api.send(picture(1) + bytes(6000), tenant="small")) == (413, "image_too_large")


class Body(io.RawIOBase):
    """A request body made while it is read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._left, self.taken = chunks, b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while len(self._left) < len(buffer) and (chunk := next(self._chunks, b"")):
            self._left += chunk
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        self.taken += size
        return size


def post(api: Api, body: Body, length: int) -> TestResponse:
    kind = "multipart/form-data; boundary=cut"
    environ = {"wsgi.input": body, "CONTENT_LENGTH": str(length), "CONTENT_TYPE": kind}
    return api.call("POST", "/v1/jobs", environ_overrides=environ)


def test_body_over_the_limit_is_not_read(api: Api) -> None:
    body = Body(itertools.repeat(bytes(65_536)))
    assert code(post(api, body, 60_000_000)) == (413, "payload_too_large")
    assert body.taken == 0


def test_parts_are_spooled_to_disk(api: Api) -> None:
    megabytes, parts = 4, 8
    api.app.config["MAX_CONTENT_LENGTH"] = None

    def chunks() -> Iterator[bytes]:
        for _ in range(parts):
            yield b'--cut\r\nContent-Disposition: form-data; name="source"; filename="s"\r\n\r\n'
            yield from itertools.repeat(b"\n" * 65_536, 16 * megabytes)
            yield b"\r\n"
        yield b"--cut--\r\n"

    tracemalloc.start()
    response = post(api, Body(chunks()), sum(map(len, chunks())))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert response.get_json(force=True)["context"] == {"field": "target"}  # so all of it was read
    assert peak < megabytes * 2**20  # eight parts of 4 MiB never were in memory together, not even one


def test_idempotency_key(api: Api) -> None:
    headers = {"Idempotency-Key": "order-1"}
    first, second = api.send(headers=headers), api.send(headers=headers)
    assert first.get_json() == second.get_json()
    assert api.jobs[0] == api.jobs[1]
    assert {entry.cause for entry in api.broker.events} == {first.get_json()["id"]}
    assert code(api.send(picture(9), headers=headers)) == (422, "idempotency_key_reused")
    assert code(api.send(options={"quality": 1}, headers=headers)) == (422, "idempotency_key_reused")
    assert api.send(picture(9), headers=headers, tenant="acme").status_code == 202
    assert api.send(headers={"Idempotency-Key": "order-2"}).get_json()["id"] != first.get_json()["id"]
    assert len(api.broker.events) == 4


@pytest.mark.parametrize("key", ["", "x" * 256, "a\u00e9"])
def test_idempotency_key_is_visible_ascii(api: Api, key: str) -> None:
    assert code(api.send(headers={"Idempotency-Key": key})) == (400, "invalid_request")


def test_same_key_at_once(api: Api) -> None:
    def send(shade: int) -> tuple[int, str]:
        response = api.send(picture(shade), headers={"Idempotency-Key": "race"})
        return response.status_code, str(response.get_json(force=True).get("code"))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, [1, 2] * 6))
    assert sorted(set(answers)) == [(202, "None"), (422, "idempotency_key_reused")]
    (job,) = set(api.jobs)
    assert [hashlib.sha256(api.world.store.get(ref.key)[0]).hexdigest() for ref in job.source] == [job.source[0].digest]


def test_broker_down(api: Api) -> None:
    api.broker.down = True
    response = api.send()
    assert code(response) == (503, "broker_unavailable")
    assert "Retry-After" in response.headers
    (page,) = [api.call("GET", "/v1/jobs").get_json()["jobs"]]
    assert [job["status"] for job in page] == ["cancelled"]  # nobody has its id: it must not run
    headers = {"Idempotency-Key": "again"}
    assert code(api.send(headers=headers)) == (503, "broker_unavailable")
    api.broker.down = False
    assert api.send(headers=headers).status_code == 202
    assert len(api.jobs) == 1


def test_traceparent_travels(api: Api) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    api.send(headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert api.broker.traceparents[0].split("-")[1] == trace


def later(api: Api, act: Callable[[str], object]) -> threading.Thread:
    """Act on the first job that appears."""

    def wait() -> None:
        while not api.jobs:
            time.sleep(0.01)
        act(api.jobs[0].job)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_wait_answers_with_the_finished_job(api: Api) -> None:
    thread = later(api, api.finish)
    response = api.send(headers={"Prefer": "respond-async, wait=20"})
    thread.join()
    assert response.status_code == 200
    assert response.headers["Preference-Applied"] == "wait=20"
    body = response.get_json()
    assert (body["status"], body["result"]["href"]) == ("succeeded", f"/v1/jobs/{body['id']}/result")


def test_wait_answers_with_the_jobs_own_problem(api: Api) -> None:
    def reject(job: str) -> None:
        api.end(job, Rejection(job, "moderate", "content_refused", "Refused.", 422, {"score": 0.9}))

    thread = later(api, reject)
    response = api.send(headers={"Prefer": "wait=20", "Idempotency-Key": "k"})
    thread.join()
    assert code(response) == (422, "content_refused")
    body = response.get_json(force=True)
    assert body["context"] == {"score": 0.9}
    assert body["instance"] == response.headers["Location"] == f"/v1/jobs/{api.jobs[0].job}"
    assert code(api.send(headers={"Idempotency-Key": "k"})) == (422, "content_refused")


def test_wait_and_failure(api: Api) -> None:
    thread = later(api, lambda job: api.end(job, Failure(job, "swap", "model_invalid", "Kept.", "e-1")))
    response = api.send(headers={"Prefer": "wait=20"})
    thread.join()
    assert code(response) == (500, "model_invalid")


def test_wait_is_over(api: Api) -> None:
    begun = time.monotonic()
    response = api.send(headers={"Prefer": "wait=1"})
    assert 0.9 < time.monotonic() - begun < 10
    assert (response.status_code, response.headers["Preference-Applied"]) == (202, "wait=1")


def test_wait_is_capped_by_the_requests_own_time(api: Api) -> None:
    api.world.steps.left = 0
    response = api.send(headers={"Prefer": "wait=600"})
    assert response.status_code == 202


@pytest.mark.parametrize("prefer", ["wait", "wait=x", "wait=-1", "await=9", "handling=strict"])
def test_what_is_no_wait_is_no_preference(api: Api, prefer: str) -> None:
    response = api.send(headers={"Prefer": prefer})
    assert response.status_code == 202
    assert "Preference-Applied" not in response.headers


def test_everything_is_in_the_store(api: Api, tmp_path: Path) -> None:
    """A second process with the same folder knows the job."""
    job = api.send().get_json()["id"]
    other = Api(tmp_path)
    assert other.call("GET", f"/v1/jobs/{job}").get_json()["id"] == job
    assert records.find(other.world.store, "demo", job) is not None
    assert json.loads(other.client.get("/openapi.json").data)["openapi"] == "3.1.0"


def test_repeat_of_a_cancelled_job_does_not_wait(api: Api) -> None:
    job = api.send(headers={"Idempotency-Key": "k"}).get_json()["id"]
    assert api.call("DELETE", f"/v1/jobs/{job}").status_code == 204
    begun = time.monotonic()
    response = api.send(headers={"Idempotency-Key": "k", "Prefer": "wait=20"})
    assert time.monotonic() - begun < 5
    assert (response.status_code, response.get_json()["status"]) == (200, "cancelled")


def test_cancel_ends_the_wait(api: Api) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(api.send, headers={"Prefer": "wait=20"})
        while not api.broker.events:
            time.sleep(0.01)
        job = api.jobs[0].job
        assert api.call("DELETE", f"/v1/jobs/{job}").status_code == 204
        assert waiting.result(5).get_json()["status"] == "cancelled"


@pytest.mark.parametrize("kind", ["field", "file"])
def test_options_come_as_a_field_or_as_a_file(api: Api, kind: str) -> None:
    text = json.dumps({"quality": 10})
    part = text if kind == "field" else (io.BytesIO(text.encode()), "options.json", "application/json")
    assert api.call("POST", "/v1/jobs", data={**_pictures(), "options": part}).get_json()["options"]["quality"] == 10


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        ({"options": ["{}", '{"quality": 10}']}, "options"),
        ({"options": ["{}", (io.BytesIO(b"{}"), "o.json")]}, "options"),
        ({"options": (io.BytesIO(b" " * 70_000), "o.json")}, "options"),
        ({"source": [(io.BytesIO(picture(1)), "s.jpg"), "s.jpg"]}, "source"),
        ({"target": [(io.BytesIO(picture(1)), "t.jpg"), "t.jpg"]}, "target"),
    ],
)
def test_nothing_in_a_form_is_passed_over(api: Api, extra: dict[str, object], field: str) -> None:
    response = api.call("POST", "/v1/jobs", data={**_pictures(), **extra})
    assert code(response) == (400, "invalid_request")
    assert response.get_json()["context"] == {"field": field}


def test_process_that_has_to_end_keeps_nobody_waiting(api: Api) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(api.send, headers={"Prefer": "wait=20"})
        while not api.broker.events:
            time.sleep(0.01)
        api.ending.set()
        response = waiting.result(5)
    assert (response.status_code, response.get_json()["status"]) == (202, "queued")


def _pictures() -> dict[str, object]:
    return {"source": (io.BytesIO(picture(1)), "s.jpg"), "target": (io.BytesIO(picture(2)), "t.jpg")}

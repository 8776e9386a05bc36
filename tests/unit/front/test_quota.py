"""SEC-07 over HTTP: what is over quota is refused before anything is stored, and what has ended frees its slot once."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from werkzeug.test import TestResponse

from shared.errors import StoreUnavailableError
from shared.events.payloads import Failure
from shared.jobs import slots
from shared.serving.outcome import Outcomes
from shared.tenancy.directory import load
from tests.unit.front.api import Api, code
from tests.unit.jobs.world import KEYS, picture


def limits(api: Api, **policy: int) -> None:
    tenants = {"demo": {"policy": policy}, "acme": {}, "small": {}}
    api.world.tenants = load(json.dumps(tenants), KEYS)


def at_once(api: Api, count: int, **more: object) -> list[TestResponse]:
    barrier = threading.Barrier(count)

    def send(index: int) -> TestResponse:
        barrier.wait()
        return api.send(picture(index), **more)  # type: ignore[arg-type]

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(send, range(count)))


def stored(api: Api) -> list[str]:
    return [entry.key for entry in api.world.store.list("").objects]


def one_more(api: Api) -> bool:
    return api.send().status_code == 202


def test_sec_07_exactly_one_of_thirty_two_and_nothing_left_of_the_others(api: Api) -> None:
    limits(api, max_concurrent=1)
    answers = at_once(api, 32)
    assert Counter(answer.status_code for answer in answers) == {202: 1, 429: 31}
    for answer in answers:
        if answer.status_code == 429:
            assert code(answer) == (429, "quota_exceeded")
            assert answer.get_json(force=True)["context"] == {"limit": "max_concurrent", "value": 1}
            assert int(answer.headers["Retry-After"]) > 0
    (job,) = api.jobs
    assert all("/slots/" in key or job.job in key for key in stored(api))


@pytest.mark.parametrize("end", ["failure", "rejection of a stage", "cancel", "killed"])
def test_sec_07_whatever_becomes_of_the_job_its_slot_is_free_once(api: Api, end: str) -> None:
    limits(api, max_concurrent=1)
    assert one_more(api)
    assert not one_more(api)
    (job,) = api.jobs
    for _ in range(2):  # the second time as a duplicate event or a repeated call
        if end == "cancel":
            assert api.call("DELETE", f"/v1/jobs/{job.job}").status_code == 204
        elif end == "killed":
            api.world.time += api.world.slot_seconds / 2
        else:
            payload = Failure(job.job, "swap", "http_500", "x", "e-1")
            Outcomes(api.world.store, "dead_letter").settle("demo", payload, "cause")
    assert Counter(answer.status_code for answer in at_once(api, 8)) == {202: 1, 429: 7}


def test_an_idempotency_key_is_one_job_in_one_slot_counted_once(api: Api) -> None:
    limits(api, max_concurrent=1, jobs_per_day=2)
    keyed = {"headers": {"Idempotency-Key": "order-7"}}
    first = api.send(**keyed)
    again = [api.send(**keyed) for _ in range(3)]
    assert {answer.get_json()["id"] for answer in [first, *again]} == {first.get_json()["id"]}
    assert not one_more(api), "and it is the only one"
    api.finish(first.get_json()["id"])
    slots.release(api.world.store, "demo", first.get_json()["id"])
    assert one_more(api)
    assert api.send(**keyed).status_code == 200, "never refused, whatever else runs"


def test_sec_07_one_key_at_once_is_never_refused(api: Api) -> None:
    limits(api, max_concurrent=1, jobs_per_minute=1)
    barrier = threading.Barrier(16)

    def send(_: int) -> TestResponse:
        barrier.wait()
        return api.send(headers={"Idempotency-Key": "order-7"})

    with ThreadPoolExecutor(16) as pool:
        assert {answer.status_code for answer in pool.map(send, range(16))} == {202}
    assert len({job.job for job in api.jobs}) == 1


def test_jobs_per_minute_and_day_say_when_they_end(api: Api) -> None:
    api.world.time += 17 - api.world.time % 60
    limits(api, jobs_per_minute=2)
    assert [one_more(api), one_more(api)] == [True, True]
    refused = api.send()
    assert refused.get_json(force=True)["context"] == {"limit": "jobs_per_minute", "value": 2}
    assert refused.headers["Retry-After"] == "43"
    api.world.time += 43
    assert one_more(api)
    limits(api, jobs_per_day=3)
    refused = api.send()
    assert refused.get_json(force=True)["context"] == {"limit": "jobs_per_day", "value": 3}
    assert int(refused.headers["Retry-After"]) == 86_400 - int(api.world.time) % 86_400


def test_another_tenants_quota_is_another(api: Api) -> None:
    limits(api, max_concurrent=1)
    assert one_more(api)
    assert api.send(tenant="acme").status_code == 202
    assert not one_more(api)


def test_a_bad_request_takes_no_slot(api: Api) -> None:
    limits(api, max_concurrent=1, jobs_per_day=1)
    assert api.send(b"no picture").status_code == 415
    assert api.send(options={"no": "such"}).status_code == 422
    assert one_more(api)


def test_a_job_that_could_not_be_stored_or_published_gives_its_slot_back(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits(api, max_concurrent=1)

    def full(*args: object, **more: object) -> None:
        raise StoreUnavailableError

    with monkeypatch.context() as patch:
        patch.setattr(api.world.store, "put", full)
        assert api.send().status_code == 503
    api.broker.down = True
    assert api.send().status_code == 503
    api.broker.down = False
    assert one_more(api)


def test_a_key_keeps_its_slot_over_a_broker_that_was_down(api: Api) -> None:
    limits(api, max_concurrent=1, jobs_per_day=1)
    api.broker.down = True
    assert api.send(headers={"Idempotency-Key": "order-7"}).status_code == 503
    api.broker.down = False
    assert api.send(headers={"Idempotency-Key": "order-7"}).status_code == 202


def test_cancelling_starts_the_upload_that_waits(api: Api) -> None:
    limits(api, max_concurrent=1)
    running = api.send().get_json()["id"]
    for name in ("source", "target"):
        api.world.put(f"tenants/demo/inbox/a/{name}.jpg")
    assert api.world.upload("tenants/demo/inbox/a/target.jpg") == []
    (shown,) = api.call("GET", "/v1/jobs?status=waiting").get_json()["jobs"]
    api.broker.down = True
    assert api.call("DELETE", f"/v1/jobs/{running}").status_code == 204, "whatever the broker says"
    api.broker.down = False
    api.world.time += 60
    assert api.call("DELETE", f"/v1/jobs/{running}").status_code == 204
    assert [job.job for job in api.jobs][1:] == [shown["id"]]
    assert api.call("DELETE", f"/v1/jobs/{shown['id']}").status_code == 204
    assert one_more(api)

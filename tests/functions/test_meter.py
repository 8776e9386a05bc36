"""meter through the harness: one usage record a job, whoever tells which end how often."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from shared import records
from shared.events.choices import Options
from shared.events.codec import from_payload
from shared.events.event import Event
from shared.events.payloads import Clip, Failure, Job, ObjectRef, Payload, Rejection, Result, Size, Tracks
from shared.jobs.records import JOB as JOB_FILE
from shared.jobs.records import JobRecord, cancel
from shared.serving.answers import Reply
from shared.serving.record import Record
from shared.storage import keys
from tests.unit.serving.support import JOB, PICTURE, App, event, until

ENDED = "2026-12-01T00:00:10.000Z"
ENDED_SECONDS = 1796083210.0
IMAGE = ObjectRef(keys.result("demo", f"{JOB}.png"), "0" * 64, 3, "image/png")
RESULT = Result(JOB, IMAGE, 1280, 720, (), "file:x", "", resized_from=Size(2000, 1000))
REJECTION = Rejection(JOB, "detect", "no_face_in_target", "No face.", 422)
FAILURE = Failure(JOB, "swap", "http_503", "Gave up.", "e-7")
RECORD = keys.usage("demo", "2026-11", JOB)
PRICES = """
version = "test-1"
currency = "CHF"
outcomes = {completed = "1", rejected = "0.5", failed = "0"}
device_seconds = {cpu = "0.01", cuda = "2", tensorrt = "3", other = "9"}
resolutions = [{up_to = "1000", factor = "1"}, {up_to = "2000000", factor = "1.5"}, {factor = "7"}]
swappers = {mesh = "1.1", other = "2"}
enhancers = {none = "1", other = "1.3"}
upscalers = {none = "1", "x2" = "1.7", other = "5"}
boosts = [{up_to = "256", factor = "1"}, {factor = "1.9"}]
"""


@pytest.fixture
def meter(tmp_path: Path) -> App:
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    app = App("meter", tmp_path / "objects", package="functions", WAKESWAP_PRICES=str(prices))
    until(app.is_ready, 60)
    return app


def asked(media: str = "image", **options: Any) -> Job:
    return Job(
        JOB, (PICTURE,), PICTURE, Options(**options), created="2026-11-30T23:59:59.000Z", priority="batch", media=media
    )


def accept(app: App, media: str = "image", **options: Any) -> None:
    job = asked(media, **options)
    app.store.put(keys.job("demo", JOB, JOB_FILE), records.dumps(records.write(JobRecord(job))))


def work(app: App, stage: str, name: str, started: float, finished: float, woke: float = 0.0, **device: float) -> None:
    reply = Reply(204, (), b"") if finished else None
    record = Record("someone", 0.0, started, finished, woke, device, reply)
    app.store.put(keys.work("demo", JOB, stage, name), record.encode())


def part(app: App, payload: Clip | Tracks, stage: str, name: str, begun: float, **device: float) -> None:
    """A finished piece of work on one part of a video; it took a second."""
    reply = Reply(200, (("ce-type", f"dev.wakeswap.{stage}.completed.v1"),), json.dumps(from_payload(payload)).encode())
    record = Record("someone", 0.0, ENDED_SECONDS + begun, ENDED_SECONDS + begun + 1, 0.0, device, reply)
    app.store.put(keys.work("demo", JOB, stage, name * 32), record.encode())


def clip(index: int, frames: int) -> Clip:
    return Clip(JOB, asked("video"), PICTURE, index, PICTURE, frames)


def tracks(index: int) -> Tracks:
    return Tracks(JOB, asked("video"), PICTURE, index, PICTURE, PICTURE)


def end(payload: Payload, stage: str = "publish", event_id: str = "e-9") -> Event:
    return replace(event(payload, stage=stage, event_id=event_id), time=ENDED)


def told(app: App, *ends: Event) -> dict[str, Any]:
    """The record after these ends, each of which was taken in silence."""
    for one in ends:
        answer = app.deliver(one)
        assert (answer.status_code, answer.data) == (204, b""), answer.text
    assert app.names(keys.usage("demo", "2026-11")) == [RECORD]
    found: dict[str, Any] = json.loads(app.store.get(RECORD)[0])
    return found


def test_a_finished_job_has_one_record_of_all_that_was_done_for_it(meter: App) -> None:
    accept(meter, swapper="hyperswap", boost=512, enhancer="gfpgan", upscaler="x2")
    work(meter, "detect", "a" * 32, ENDED_SECONDS - 8, ENDED_SECONDS - 6.5, woke=1.25, cpu=0.5)
    work(meter, "swap", "b" * 32, ENDED_SECONDS - 6, ENDED_SECONDS - 5, cuda=0.1, cpu=0.25)
    work(meter, "swap", "c" * 32, ENDED_SECONDS - 9, 0)  # died, or still at it: it is not the attempt that counted
    work(meter, "notify", "d" * 32, ENDED_SECONDS + 1, ENDED_SECONDS + 2)  # is told of the end
    meter.store.put(keys.job("demo", JOB, "swap", "pixels.npy"), b"x" * 1000)
    meter.store.put(IMAGE.key, b"x" * 77)
    found = told(meter, end(RESULT), end(RESULT), end(RESULT, event_id="once-more"))
    measures, bill = found["measures"], found["bill"]
    assert found["tenant"] == "demo"
    assert found["accepted"].startswith("2026-11-30")
    assert (found["ended"], found["priority"], found["code"]) == (ENDED, "batch", "")
    assert (measures["outcome"], measures["frames"], measures["pixels"]) == ("completed", 1, 2_000_000)
    assert measures["modes"] == {"swapper": "hyperswap", "boost": 512, "enhancer": "gfpgan", "upscaler": "x2"}
    assert measures["device"] == {"cpu": 0.75, "cuda": 0.1}
    assert found["stages"] == [
        {"stage": "detect", "work": 1.5, "wake": 1.25, "device": {"cpu": 0.5}, "segment": None, "frames": 0},
        {"stage": "swap", "work": 1.0, "wake": 0.0, "device": {"cpu": 0.25, "cuda": 0.1}, "segment": None, "frames": 0},
    ]
    assert found["stored_bytes"] == 1077
    weights = {"swapper": "2", "boost": "1.9", "enhancer": "1.3", "upscaler": "1.7"}
    cost = Fraction("0.75") * Fraction("0.01") + Fraction("0.1") * 2
    cost *= Fraction("1.5") * 2 * Fraction("1.9") * Fraction("1.3") * Fraction("1.7")
    assert (bill["prices"], bill["currency"], bill["weights"]) == ("test-1", "CHF", weights)
    assert abs(Fraction(bill["cost"]) - cost) <= Fraction(1, 2 * 10**9)


def test_a_rejected_job_pays_for_what_models_ran_and_for_no_mode(meter: App) -> None:
    accept(meter, enhancer="gfpgan")
    work(meter, "moderate", "a" * 32, ENDED_SECONDS - 2, ENDED_SECONDS - 1, cpu=2.0)
    found = told(meter, end(REJECTION, "detect"))
    assert (found["measures"]["outcome"], found["code"]) == ("rejected", "no_face_in_target")
    assert (found["measures"]["pixels"], found["bill"]["weights"]) == (0, {})
    assert found["bill"]["cost"] == "0.01"


def test_a_failure_costs_nothing_and_gives_way_to_the_result_after_a_replay(meter: App) -> None:
    accept(meter)
    work(meter, "moderate", "a" * 32, ENDED_SECONDS - 2, ENDED_SECONDS - 1, cpu=2.0)
    failure = end(FAILURE, "dead_letter")
    first = told(meter, failure, failure)
    assert (first["measures"]["outcome"], first["code"], first["bill"]["cost"]) == ("failed", "http_503", "0")
    after = told(meter, replace(end(RESULT), time="2027-02-01T00:00:00Z"))  # months later: it is the same record
    assert (after["measures"]["outcome"], after["bill"]["cost"]) == ("completed", "0.033")
    assert told(meter, failure, end(REJECTION, "detect")) == after, "and nothing replaces that"


def test_ends_that_come_in_the_wrong_order_bill_the_one_that_counts(meter: App) -> None:
    accept(meter)
    work(meter, "moderate", "a" * 32, ENDED_SECONDS - 2, ENDED_SECONDS - 1, cpu=2.0)
    assert told(meter, end(RESULT), end(FAILURE, "dead_letter"))["measures"]["outcome"] == "completed"


def test_who_cancels_after_the_end_pays(meter: App) -> None:
    accept(meter)
    cancel(meter.store, "demo", JOB, ENDED_SECONDS)
    assert told(meter, end(RESULT))["measures"]["outcome"] == "completed"


def test_a_job_of_which_nothing_is_left_is_not_metered(meter: App) -> None:
    assert meter.deliver(end(RESULT)).status_code == 204
    assert meter.names("tenants/") == []


def test_damaged_records(meter: App) -> None:
    """Of work: nothing is billed for it; of usage: written anew; of the job: the event comes again."""
    accept(meter)
    work(meter, "moderate", "a" * 32, ENDED_SECONDS - 2, ENDED_SECONDS - 1, cpu=2.0)
    for number, data in enumerate((b"", b"{", b'{"started": 1, "finished": 2, "device": {"cpu": "much"}}')):
        meter.store.put(keys.work("demo", JOB, "detect", str(number) * 32), data)
    meter.store.put(RECORD, b'{"tenant": "demo"')
    found = told(meter, end(RESULT))
    assert [stage["stage"] for stage in found["stages"]] == ["moderate"]
    meter.store.put(keys.job("demo", JOB, JOB_FILE), b"{")
    assert meter.deliver(end(RESULT)).status_code == 500


@pytest.mark.parametrize("stage", ["moderate", "swap"])
def test_an_event_that_ends_no_job_goes_to_dead_letter(meter: App, stage: str) -> None:
    accept(meter)
    answer = meter.deliver(end(Job(JOB, (PICTURE,), PICTURE), stage))
    assert (answer.status_code, answer.get_json()["code"]) == (400, "invalid_cloudevent")
    foreign = replace(end(RESULT), type="com.example.other")
    assert meter.deliver(foreign).status_code == 400
    assert meter.names(keys.usage("demo", "2026-11")) == []


def test_an_end_that_nobody_believes_bills_nothing(meter: App) -> None:
    accept(meter)
    forged = replace(end(RESULT), extensions={"tenantid": "demo", "proof": "test:" + "0" * 64})
    assert meter.deliver(forged).status_code == 403
    assert meter.names(keys.usage("demo", "2026-11")) == []


def test_a_price_file_that_cannot_work_keeps_the_stage_from_being_ready(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES.replace('cuda = "2"', "cuda = 2.0"))
    app = App("meter", tmp_path / "objects", package="functions", WAKESWAP_PRICES=str(tmp_path / "prices.toml"))
    until(lambda: app.client.get("/health/readiness").get_json()["code"] == "setup_failed", 60)
    assert "device_seconds.cuda" in app.client.get("/health/readiness").get_json()["detail"]
    until(lambda: app.left == [3], 60)


VIDEO = replace(RESULT, media="video", frames=100, frames_swapped=80, frames_without_face=20, seconds=4.0)


def test_a_video_of_a_hundred_frames_costs_a_hundred_times_what_one_frame_does(meter: App) -> None:
    accept(meter, "video")
    for index, frames in enumerate((40, 40, 20)):
        part(meter, tracks(index), "detect", f"{index}", -9 + index, cuda=frames / 100)
        part(meter, clip(index, frames), "swap", f"{index}", -8 + index, cuda=frames / 200)
    found = told(meter, end(VIDEO), end(VIDEO, event_id="once-more"), end(VIDEO))
    measures, bill = found["measures"], found["bill"]
    assert (measures["media"], measures["seconds"], measures["frames"]) == ("video", 4.0, 100)
    assert (measures["pixels"], measures["device"]) == (2_000_000, {"cuda": 1.5})
    frame = Fraction("0.015") * 2
    assert (bill["frames"], Fraction(bill["frame"])) == (100, frame)
    assert Fraction(bill["cost"]) == 100 * frame * Fraction("1.5") * Fraction("1.1")
    parts = [(use["stage"], use["segment"], use["frames"], use["work"]) for use in found["stages"]]
    assert sorted(parts) == [
        *[("detect", index, 0, 1.0) for index in range(3)],
        *[("swap", index, frames, 1.0) for index, frames in enumerate((40, 40, 20))],
    ], "a piece of work for each event"


def test_a_part_that_two_events_asked_for_is_billed_once(meter: App) -> None:
    """And one that a stage has worked on in vain, or is at, not at all."""
    accept(meter, "video")
    part(meter, clip(0, 50), "swap", "a", -9, cuda=0.5)
    part(meter, clip(0, 50), "swap", "b", -5, cuda=0.7)
    part(meter, clip(1, 50), "swap", "c", -7, cuda=0.5)
    work(meter, "swap", "d" * 32, ENDED_SECONDS - 3, 0, cuda=9.0)
    found = told(meter, end(VIDEO))
    assert found["measures"]["device"] == {"cuda": 1.0}
    assert [use["segment"] for use in found["stages"]] == [0, 1]


def test_a_rejected_video_is_billed_for_the_parts_that_were_done(meter: App) -> None:
    accept(meter, "video")
    part(meter, tracks(0), "detect", "a", -9, cuda=0.25)
    part(meter, clip(0, 40), "swap", "b", -8, cuda=0.5)
    part(meter, clip(1, 25), "swap", "c", -7, cuda=0.5)
    part(meter, clip(2, 40), "swap", "d", +1, cuda=0.5)  # was begun when the end was out
    found = told(meter, end(REJECTION, "detect"))
    assert found["measures"]["frames"] == 65
    assert (found["measures"]["pixels"], found["bill"]["weights"]) == (0, {})
    assert Fraction(found["bill"]["cost"]) == Fraction("1.25") * 2 / 2, "device time as it is, and the half of it"


def test_a_video_that_is_rejected_before_a_part_is_done_is_billed_for_the_look_at_it(meter: App) -> None:
    accept(meter, "video")
    work(meter, "moderate", "a" * 32, ENDED_SECONDS - 2, ENDED_SECONDS - 1, cuda=0.5)
    found = told(meter, end(REJECTION, "moderate"))
    assert (found["measures"]["frames"], found["bill"]["frames"], found["bill"]["cost"]) == (0, 1, "0.5")


def test_a_failed_video_tells_what_was_done_and_the_price_file_what_it_costs(meter: App) -> None:
    accept(meter, "video")
    part(meter, clip(0, 40), "swap", "b", -8, cuda=0.5)
    found = told(meter, end(FAILURE, "dead_letter"))
    assert (found["measures"]["frames"], found["measures"]["device"]) == (40, {"cuda": 0.5})
    assert (found["bill"]["cost"], found["bill"]["share"]) == ("0", "0")
    after = told(meter, end(VIDEO))
    assert (after["measures"]["outcome"], after["bill"]["frames"]) == ("completed", 100), "after a replay"

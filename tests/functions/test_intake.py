"""intake through the harness: events in from the queue and the clock, jobs out to a broker on a socket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import TestResponse

from shared.events.codec import encode_binary
from shared.events.event import Event
from shared.events.payloads import Rejection
from shared.jobs import line
from shared.serving.outcome import Outcomes
from tests.signing import signed
from tests.unit.jobs.world import DATA, event_file, picture, ping
from tests.unit.serving.support import App
from tests.unit.serving.test_emitter import Broker, broker

SQS = "dev.knative.connector.event.aws-sqs"
KEY = {"Authorization": "Bearer key-of-demo-0123456789"}


@dataclass
class Door:
    app: App
    broker: Broker

    def deliver(self, sent: Event) -> TestResponse:
        headers, body = encode_binary(sent)
        return self.app.client.post("/", headers=headers, data=body)

    def notify(self, *uploads: str, event_id: str = "n-1") -> TestResponse:
        """What Knative's IntegrationSource makes of a message in the queue: a string."""
        body = json.loads(event_file("ce_knative_aws_sqs_string_data.json")["data"])
        (one,) = body["Records"]
        told = [
            {**one["s3"], "bucket": {"name": "wakeswap"}, "object": {**one["s3"]["object"], "key": key}}
            for key in uploads
        ]
        body["Records"] = [{**one, "s3": part} for part in told]
        source = "dev.knative.eventing.aws-sqs-source"
        return self.deliver(Event(event_id, source, SQS, datacontenttype="text/plain", data=json.dumps(body)))

    def put(self, folder: str) -> None:
        for name, shade in (("source", 1), ("target", 2)):
            self.app.store.put(f"tenants/demo/inbox/{folder}/{name}.jpg", picture(shade))

    @property
    def published(self) -> list[tuple[str, Any]]:
        """(event id, data) of what the broker took."""
        return [(headers["ce-id"], json.loads(body)) for _, headers, body in self.broker.received]


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with broker() as server:
        settings = {"K_SINK": server.address, "WAKESWAP_API_KEYS": "demo=key-of-demo-0123456789"}
        yield Door(App("intake", tmp_path, package="functions", **settings), server)


def test_s3_09_an_upload_for_no_tenant_is_refused_and_stops_no_other_of_its_notification(door: Door) -> None:
    door.put("a")
    for _ in range(2):
        answer = door.notify("tenants/nobody/inbox/a/source.jpg", "tenants/demo/inbox/a/source.jpg")
        assert (answer.status_code, answer.data) == (202, b"")
    assert [headers["ce-tenantid"] for _, headers, _ in door.broker.received] == ["nobody", "demo"]
    ((_, refused), (_, job)) = door.published
    assert refused["code"] == "unknown_tenant"
    assert job["target"]["key"] == "tenants/demo/inbox/a/target.jpg"


def test_s3_10_ce_01_one_upload_told_three_times_and_by_two_events_is_one_job(door: Door) -> None:
    door.put("a b")
    for event_id in ("n-1", "n-1", "n-1", "n-2"):
        answer = door.notify("tenants/demo/inbox/a+b/source.jpg", event_id=event_id)
        assert (answer.status_code, answer.data) == (202, b"")
    ((first, job), (second, again)) = door.published  # repeats of n-1 were answered from the record
    assert (first, job) == (second, again)
    assert job["target"]["key"] == "tenants/demo/inbox/a b/target.jpg"
    assert [headers["ce-tenantid"] for _, headers, _ in door.broker.received] == ["demo", "demo"]
    shown = door.app.client.get(f"/v1/jobs/{job['job']}", headers=KEY).get_json()
    assert (shown["status"], shown["origin"]) == ("queued", "upload")


@pytest.mark.parametrize("name", ["ce_knative_aws_sqs.json", "ce_knative_aws_sqs_string_data.json"])
def test_s3_10_both_forms_of_the_integration_source_make_one_job(door: Door, name: str) -> None:
    door.put("a b")
    body = (DATA / "event" / name).read_text()
    body = body.replace("faceswap-in", "wakeswap").replace("t-acme/in/a+b.jpg", "tenants/demo/inbox/a+b/target.jpg")
    answer = door.app.client.post("/", data=body, content_type="application/cloudevents+json")
    assert (answer.status_code, answer.data) == (202, b"")
    ((_, job),) = door.published
    assert [job["source"][0]["key"], job["target"]["key"]] == [
        f"tenants/demo/inbox/a b/{name}.jpg" for name in ("source", "target")
    ]


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("anim_3frames.gif", "animation_unsupported", 415),
        ("anim_3frames.webp", "animation_unsupported", 415),
        ("anim_3frames_apng.png", "animation_unsupported", 415),
        ("bomb_20000x20000.png", "image_too_large", 413),
        ("bomb_12000x12000_warn_only.png", "image_too_large", 413),
        ("gif_screen_65535.gif", "image_too_large", 413),
        ("html_named.jpg", "unsupported_media_type", 415),
        ("eps_named.jpg", "unsupported_media_type", 415),
        ("svg_named.png", "unsupported_media_type", 415),
        ("remote_ref.svg", "unsupported_media_type", 415),
        ("zero_bytes.jpg", "media_empty", 422),
        ("one_pixel.png", "image_too_small", 422),
        ("strip_8000x1.png", "image_too_small", 422),
    ],
)
def test_img_06_img_09_img_10_a_bad_upload_is_one_rejected_event(door: Door, name: str, code: str, status: int) -> None:
    """The delivery is acknowledged, also again; the API shows the same fault under the id that the event names."""
    door.app.store.put("tenants/demo/inbox/a/source.jpg", (DATA / "image" / name).read_bytes())
    door.app.store.put("tenants/demo/inbox/a/target.jpg", picture())
    for event_id in ("n-1", "n-1", "n-2"):
        assert door.notify("tenants/demo/inbox/a/source.jpg", event_id=event_id).status_code == 202
    assert len({identity for identity, _ in door.published}) == 1, "a repeat has the id that the broker drops"
    rejection = door.published[0][1]
    assert (rejection["code"], rejection["status"]) == (code, status)
    assert {headers["ce-type"] for _, headers, _ in door.broker.received} == {"dev.wakeswap.intake.rejected.v1"}
    shown = door.app.client.get(f"/v1/jobs/{rejection['job']}", headers=KEY).get_json()
    assert (shown["status"], shown["error"]["code"]) == ("rejected", code)


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("audio_only.mp4", "no_video_stream", 422),
        ("zero_frames.mp4", "no_video_stream", 422),
        ("no_moov.mp4", "media_truncated", 422),
        ("zero_bytes.mp4", "media_empty", 422),
    ],
)
def test_vid_09_an_upload_without_pictures_is_one_rejected_event(door: Door, name: str, code: str, status: int) -> None:
    door.app.store.put("tenants/demo/inbox/a/source.jpg", picture())
    door.app.store.put("tenants/demo/inbox/a/target.mp4", (DATA / "video" / name).read_bytes())
    for event_id in ("n-1", "n-1", "n-2"):
        assert door.notify("tenants/demo/inbox/a/target.mp4", event_id=event_id).status_code == 202
    assert len({identity for identity, _ in door.published}) == 1
    rejection = door.published[0][1]
    assert (rejection["code"], rejection["status"]) == (code, status)
    assert {headers["ce-type"] for _, headers, _ in door.broker.received} == {"dev.wakeswap.intake.rejected.v1"}


@pytest.mark.parametrize(
    ("name", "media", "content_type"),
    [("one_frame.mp4", "video", "video/mp4"), ("jpeg_named.mp4", "image", "image/jpeg")],
)
def test_vid_09_content_says_what_an_upload_is(door: Door, name: str, media: str, content_type: str) -> None:
    door.app.store.put("tenants/demo/inbox/a/source.jpg", picture())
    door.app.store.put("tenants/demo/inbox/a/target.mp4", (DATA / "video" / name).read_bytes())
    door.notify("tenants/demo/inbox/a/target.mp4")
    assert [headers["ce-media"] for _, headers, _ in door.broker.received] == [media]
    (job,) = [data for _, data in door.published]
    assert (job["media"], job["target"]["content_type"]) == (media, content_type)


@pytest.mark.parametrize(
    ("data", "kind", "status"), [("no json", "text/plain", 400), (b"\x00", "image/png", 400), ({"a": 1}, "", 204)]
)
def test_s3_10_what_is_no_notification(door: Door, data: Any, kind: str, status: int) -> None:
    sent = Event("n-9", "/x", SQS, datacontenttype=kind or "application/json", data=data)
    assert door.deliver(sent).status_code == status
    assert door.published == []


def ended(job: str) -> Event:
    """What publish says of a job that it refused."""
    data = {"job": job, "stage": "publish", "code": "x", "detail": "y", "status": 422}
    return signed(
        Event("end-" + job, "/wakeswap/publish", "dev.wakeswap.publish.rejected.v1", job,
              datacontenttype="application/json", extensions={"tenantid": "demo"}, data=data)
    )  # fmt: skip


def test_cold_07_the_clock_starts_one_batch_whatever_the_event_id(door: Door) -> None:
    door.put("nightly/1")
    door.put("nightly/2")
    for event_id in ("e-1", "e-1", "e-2"):
        assert door.deliver(ping(identity=event_id)).status_code in (202, 204)
    assert [job["priority"] for _, job in door.published] == ["batch"], "the policy's max_batch"
    tick = Event("t-1", "/apis/v1/namespaces/wakeswap/pingsources/waiting", line.PING, data=line.TICK)
    for _ in range(2):
        assert door.deliver(tick).status_code in (202, 204)
    assert len(door.published) == 1, "the other waits for its end"
    first = door.published[0][1]["job"]
    Outcomes(door.app.store, "publish").settle("demo", Rejection(first, "publish", "x", "y", 422), "c")
    for _ in range(2):
        assert door.deliver(ended(first)).status_code in (202, 204)
    assert [job["priority"] for _, job in door.published] == ["batch", "batch"]
    assert not door.app.names("system/work/intake/" + tick.digest), "what can be repeated leaves no record"
    assert {headers["ce-priority"] for _, headers, _ in door.broker.received} == {"batch"}


def test_http_job_is_published(door: Door) -> None:
    door.put("a")
    body = {"source": "a/source.jpg", "target": "a/target.jpg"}
    answer = door.app.client.post("/v1/jobs", json=body, headers=KEY)
    assert answer.status_code == 202
    ((_, job),) = door.published
    assert job["job"] == answer.get_json()["id"]
    assert door.app.client.delete(f"/v1/jobs/{job['job']}", headers=KEY).status_code == 204

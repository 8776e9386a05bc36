"""The product's own stages, each run through the harness on a folder store, with the real models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from werkzeug.test import TestResponse

from shared.events.choices import Options
from shared.events.codec import decode, encode_binary
from shared.events.event import Event, parse_type
from shared.events.payloads import Job, ObjectRef, Rejection
from shared.models.cache import ModelCache
from shared.storage import keys
from shared.storage.local import LocalStore
from tests.signing import signed
from tests.unit.serving.support import JOB, App, event, until
from tests.unit.serving.test_emitter import broker

DATA = Path(__file__).parents[1] / "data"
WORK = ("moderate", "detect", "swap", "publish")


class Chain:
    """moderate -> detect -> swap -> publish -> notify over one store; each reply is delivered to the next stage."""

    def __init__(self, root: Path, models: Path) -> None:
        self.store = LocalStore(root)
        settings = {"WAKESWAP_MODEL_CACHE": str(models)}
        self.stages = {name: App(name, root, package="functions", **settings) for name in (*WORK, "notify")}
        for app in self.stages.values():
            until(app.is_ready, 60)

    def put(self, name: str, data: bytes, content_type: str) -> ObjectRef:
        key = keys.inbox("demo", name)
        self.store.put(key, data, content_type=content_type)
        return ObjectRef(key, hashlib.sha256(data).hexdigest(), len(data), content_type)

    def run(self, job: Job) -> list[Event]:
        """Every event of the chain, the last one being the job's end."""
        sent = [event(job)]
        for name in WORK:
            answer = self.stages[name].deliver(sent[-1])
            assert answer.status_code == 200, answer.text
            sent.append(reply(answer))
            if ended(sent[-1]):
                break
        assert self.stages["notify"].deliver(sent[-1]).status_code == 204
        return sent


def reply(answer: TestResponse) -> Event:
    return decode(dict(answer.headers), answer.data, limit=100_000)


def ended(sent: Event) -> bool:
    kind = parse_type(sent.type)
    assert kind is not None
    return kind == ("publish", "completed") or kind.outcome == "rejected"


def pixels(data: bytes) -> NDArray[np.uint8]:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert image is not None
    return image.astype(np.uint8)


@pytest.fixture(scope="module")
def chain(
    tmp_path_factory: pytest.TempPathFactory, model_cache: ModelCache, model_files: Callable[[str], object]
) -> Chain:
    for name in ("open_nsfw", "centerface", "face_mesh"):
        model_files(name)
    return Chain(tmp_path_factory.mktemp("chain"), model_cache.root)


@pytest.mark.slow
def test_two_pictures_become_one(chain: Chain, sample: Callable[[str], Path]) -> None:
    source = chain.put("source.png", sample("astronaut").read_bytes(), "image/png")
    target_bytes = (DATA / "face" / "three_faces_small_mid_large.jpg").read_bytes()
    target = chain.put("target.jpg", target_bytes, "image/jpeg")
    events = chain.run(Job(JOB, (source,), target, Options(format="png", faces="one")))
    assert [parse_type(sent.type) for sent in events[1:]] == [(name, "completed") for name in WORK]
    assert {sent.tenant for sent in events} == {"demo"}
    assert len({str(sent.extensions["traceparent"]).split("-")[1] for sent in events[1:]}) == 1
    result = events[-1].data
    assert isinstance(result, dict)
    image = result["image"]
    assert isinstance(image, dict)
    made, before = pixels(chain.store.get(str(image["key"]))[0]), pixels(target_bytes)
    assert made.shape == before.shape
    changed = np.abs(made.astype(int) - before.astype(int)).max(axis=2) > 12
    assert 0.0005 < changed.mean() < 0.5, "the face changed, and not the whole picture"
    outcome = json.loads(chain.store.get(keys.job("demo", JOB, "outcome.json"))[0])
    assert outcome["type"] == "dev.wakeswap.publish.completed.v1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("picture", "content_type", "code"),
    [
        ("image/truncated_60pct.jpg", "image/jpeg", "media_truncated"),
        ("image/zero_bytes.jpg", "image/jpeg", "media_empty"),
        ("face/no_face.png", "image/png", "no_face_in_target"),
    ],
)
def test_ce_06_a_bad_picture_ends_in_one_rejected_event(
    chain: Chain, sample: Callable[[str], Path], picture: str, content_type: str, code: str
) -> None:
    job_id = f"job-{code.replace('_', '-')}"
    source = chain.put(f"{job_id}.png", sample("astronaut").read_bytes(), "image/png")
    target = chain.put(f"{job_id}.target", (DATA / picture).read_bytes(), content_type)
    end = chain.run(Job(job_id, (source,), target))[-1]
    assert isinstance(end.data, dict)
    assert end.data["code"] == code


@pytest.mark.slow
def test_ce_06_a_picture_that_is_gone_ends_in_one_rejected_event(chain: Chain) -> None:
    gone = ObjectRef(keys.inbox("demo", "gone.png"), "0" * 64, 10, "image/png")
    end = chain.run(Job("job-gone-gone", (gone,), gone))[-1]
    assert isinstance(end.data, dict)
    assert end.data["code"] == "object_gone"


@pytest.mark.slow
def test_a_reference_to_another_tenant_leads_nowhere(chain: Chain) -> None:
    foreign = ObjectRef("tenants/other/inbox/a.png", "0" * 64, 10, "image/png")
    end = chain.run(Job("job-foreign-1", (foreign,), foreign))[-1]
    assert isinstance(end.data, dict)
    assert end.data["code"] == "invalid_key"


def letter(**more: str) -> tuple[dict[str, str], bytes]:
    """An event as the broker's dead letter sends it on."""
    original = event(event_id="e-7")
    errors = {"knativeerrorcode": "503", "knativeerrordest": "http://swap.default.svc.cluster.local/", **more}
    return encode_binary(signed(Event(**{**vars(original), "extensions": {**original.extensions, **errors}})))


def test_dead_letter_fails_the_job_once_and_keeps_the_original(tmp_path: Path) -> None:
    with broker() as server:
        app = App("dead_letter", tmp_path, package="functions", K_SINK=server.address)
        headers, body = letter()
        for _ in range(3):
            assert app.client.post("/", headers=headers, data=body).status_code == 202
    assert [sent["ce-type"] for _, sent, _ in server.received] == ["dev.wakeswap.dead_letter.failed.v1"]
    failure = json.loads(server.received[0][2])
    assert (failure["job"], failure["stage"], failure["dead_letter"]) == (JOB, "swap", "e-7")
    kept = app.names("system/dead-letter/")
    assert len(kept) == 1
    assert json.loads(app.store.get(kept[0])[0])["id"] == "e-7"


def test_a_dead_letter_of_a_job_that_has_ended_says_nothing(tmp_path: Path) -> None:
    with broker() as server:
        app = App("dead_letter", tmp_path, package="functions", K_SINK=server.address)
        end = Rejection(JOB, "detect", "no_face_in_source", "No face.", 422)
        headers, body = encode_binary(signed(event(end, stage="detect", event_id="e-8")))
        assert app.client.post("/", headers=headers, data=body).status_code == 204
        assert server.received == []


def test_intake_takes_notifications_and_serves_the_api_in_one_process(tmp_path: Path) -> None:
    with broker() as server:
        settings = {"K_SINK": server.address, "WAKESWAP_API_KEYS": "demo=key-of-demo-0123456789"}
        app = App("intake", tmp_path, package="functions", **settings)
        test_event = (DATA / "event" / "s3_test_event.json").read_bytes()
        headers = {
            "ce-specversion": "1.0",
            "ce-id": "n-1",
            "ce-source": "/sqs",
            "ce-type": "dev.knative.eventing.aws-sqs",
        }
        answer = app.client.post("/", headers={**headers, "content-type": "application/json"}, data=test_event)
        assert (answer.status_code, server.received) == (204, [])
        assert app.client.get("/v1/jobs").status_code == 401
        listing = app.client.get("/v1/jobs", headers={"Authorization": "Bearer key-of-demo-0123456789"})
        assert (listing.status_code, listing.get_json()["jobs"]) == (200, [])
        assert app.client.get("/openapi.json").status_code == 200

"""SEC-06 through every door of real processes, at DEBUG, on a real S3 and a real redis: no secret of the installation,
no credential of a caller and no name that a person gave a file stands in any log.
"""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import boto3
import jwt
import pytest

from shared import records
from shared.events.codec import encode_binary
from shared.events.event import Event, type_of
from shared.events.payloads import Job, ObjectRef, Result
from shared.storage import keys
from tests.servers.redis import PASSWORD, Redis
from tests.servers.seaweed import ACCESS_KEY, SECRET_KEY, Seaweed
from tests.services.process import StageProcess, exchange, running
from tests.signing import EVENT_KEYS
from tests.unit.jobs.world import event_file, picture
from tests.unit.serving.support import JOB, event
from tests.unit.serving.test_emitter import broker
from tests.unit.webhooks.receiver import running as receiving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NAME = "Maria Mustermann"
FOLDER = f"tenants/demo/inbox/{NAME}"
KEY, TOKEN = "key-of-demo-0123456789", "token-of-the-bucket-0123456789"
JWT_SECRET, AUDIT_KEY = "of-the-issuer-0123456789-0123456789-ab", "of-the-audit-0123456789-0123456789-abc"
WEBHOOK = "whsec_" + base64.b64encode(b"a secret of the webhook, 32 bytes").decode()
WRONG, OURS = "a-wrong-key-0123456789", "wk_abcdefgh_" + "a2" * 26
SIGNED = "of-the-address-0123456789"
ADDRESS = f"https://pictures.invalid/{quote(NAME)}.jpg?sig={SIGNED}"
CLAIMS = {"iss": "issuer", "aud": "wakeswap", "tenant": "demo", "sub": "maria@example.com", "exp": 4_000_000_000}
CREDENTIALS = {
    "api key": KEY,
    "wrong key": WRONG,
    "key of ours": OURS.rpartition("_")[2],
    "token": jwt.encode(CLAIMS, JWT_SECRET, "HS256").rpartition(".")[2],
    "wrong token": jwt.encode(CLAIMS, "x" * 32, "HS256").rpartition(".")[2],
    "issuer's secret": JWT_SECRET,
    "audit key": AUDIT_KEY,
    "event key": EVENT_KEYS.partition("=")[2],
    "webhook secret": WEBHOOK.removeprefix("whsec_"),
    "notification token": TOKEN,
    "redis password": PASSWORD,
    "S3 secret": SECRET_KEY,
    "signature in an address": SIGNED,
    "presigned link": "X-Amz-Signature=",
}
NAMES = ("Mustermann", quote(NAME), "maria@example", "Maria")


@dataclass(frozen=True)
class World:
    settings: dict[str, str]
    intake: StageProcess
    root: Path
    s3: Any
    stop: Callable[[], None]
    """Ends store and redis, so that every request fails in the middle."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ExitStack() as stack:
        s3, redis, sink = Seaweed(tmp_path), Redis(tmp_path), stack.enter_context(broker())
        for server in (s3, redis):
            server.start()
        servers = stack.enter_context(ExitStack())
        servers.callback(redis.stop)
        servers.callback(s3.stop)
        settings = {
            "WAKESWAP_STORE_URL": "s3://wakeswap",
            "AWS_ENDPOINT_URL_S3": s3.endpoint,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
            "WAKESWAP_LOG_LEVEL": "DEBUG",
            "WAKESWAP_TENANTS": json.dumps({"demo": {"policy": {"fetch_hosts": ["pictures.invalid"]}}}),
            "WAKESWAP_API_KEYS": f"demo={KEY}",
            "WAKESWAP_NOTIFICATION_TOKEN": TOKEN,
            "WAKESWAP_JWT_ISSUER": "issuer",
            "WAKESWAP_JWT_AUDIENCE": "wakeswap",
            "WAKESWAP_JWT_SECRET": JWT_SECRET,
            "WAKESWAP_AUDIT_KEY": AUDIT_KEY,
            "WAKESWAP_RATE_STORE": redis.address,
            "K_SINK": sink.address,
        }
        client = boto3.client(
            "s3",
            endpoint_url=s3.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="wakeswap")
        for name, data in (("source.jpg", picture(1)), ("target.jpg", picture(2)), ("broken.jpg", b"no picture")):
            client.put_object(Bucket="wakeswap", Key=f"{FOLDER}/{name}", Body=data)
        manifest = {"source": "source.jpg", "target": "gone.jpg"}
        client.put_object(Bucket="wakeswap", Key=f"{FOLDER}/{NAME}.job.json", Body=json.dumps(manifest).encode())
        process = stack.enter_context(running("intake", tmp_path, package="functions", **settings))
        process.wait_ready(60)
        yield World(settings, process, tmp_path, client, servers.close)


def test_sec_06_nothing_of_it_stands_in_any_log(world: World) -> None:
    statuses = [*requests(world), *notifications(world.intake), *clock(world.intake)]
    world.stop()
    statuses += [*requests(world), *clock(world.intake)]
    assert {200, 202, 204, 401, 404, 307} <= set(statuses), statuses
    assert any(status in (400, 422, 502, 503) for status in statuses), statuses
    logs = {"intake": world.intake.log()}
    logs["relay"] = bug(world)
    logs["notify"] = webhooks(world)
    for process, log in logs.items():
        found = [what for what, secret in CREDENTIALS.items() if secret in log]
        assert not found, (process, found, [line for line in log.splitlines() if CREDENTIALS[found[0]] in line])
        assert not [name for name in NAMES if name.lower() in log.lower()], process
        assert all(json.loads(line) for line in log.splitlines() if line.startswith("{"))
    assert "ZeroDivisionError" in logs["relay"]
    assert "requests pass" in logs["intake"]
    assert "event refused" in logs["intake"]
    assert "webhook" in logs["notify"]
    assert "POST /v1/jobs" in logs["intake"]
    assert "token refused" in logs["intake"]


def bug(world: World) -> str:
    """A stage dies of a text that holds everything at once; its traceback is logged."""
    known = [KEY, AUDIT_KEY, JWT_SECRET, WEBHOOK, TOKEN, SECRET_KEY, world.settings["WAKESWAP_RATE_STORE"], OURS]
    address = f"https://pictures.invalid/a.jpg?sig={SIGNED}"
    shaped = [f"Bearer {WRONG}", jwt.encode(CLAIMS, "x" * 32, "HS256"), address, CLAIMS["sub"], EVENT_KEYS]
    text = f"bug:{known} {shaped} {address.replace('?sig', '?X-Amz-Signature')} {FOLDER}/source.jpg"
    folder = world.root / "bug"
    folder.mkdir()
    with running("relay", folder, **{**world.settings, "WAKESWAP_STORE_URL": f"file:{folder}/objects"}) as stage:
        stage.wait_ready(60)
        gone = ObjectRef(f"{FOLDER}/gone.jpg", "0" * 64, 9, "image/jpeg")
        assert stage.deliver(event(Job(JOB, (gone,), gone, origin=text))).status == 500
        return stage.log() + stage.call("GET", "/metrics").body.decode()


def requests(world: World) -> Iterator[int]:
    """The HTTP API: by each kind of credential, with files, names and addresses."""
    right, token = f"Bearer {KEY}", "Bearer " + jwt.encode(CLAIMS, JWT_SECRET, "HS256")
    wrong = [f"Bearer {WRONG}", f"Bearer {OURS}", "Bearer " + jwt.encode(CLAIMS, "x" * 32, "HS256"), "Basic " + WRONG]
    with closing(world.intake.connect()) as connection:
        for credential in (right, token, *wrong):
            path = f"/v1/jobs?cursor={quote(NAME)}&token={SIGNED}"
            yield exchange(connection, "GET", path, headers={"Authorization": credential}).status
        sent = form()
        made = exchange(connection, "POST", "/v1/jobs", *sent_as(right, sent))
        yield made.status
        job = json.loads(made.body).get("id", "")
        for source in ("source.jpg", "gone.jpg", "broken.jpg"):
            yield post(connection, {"source": f"{NAME}/{source}", "target": f"{FOLDER}/target.jpg"}, token)
        local, credentials = f"http://127.0.0.1/{NAME}?sig={SIGNED}", f"https://u:{KEY}@pictures.invalid/?sig={SIGNED}"
        for address in (ADDRESS, local, credentials):
            yield post(connection, {"source": {"url": address}, "target": f"{NAME}/target.jpg"}, right)
        yield post(connection, {"source": 1, NAME: KEY}, right)
        if job:
            finish(world.s3, job)
        for method, path in (("GET", quote(NAME)), ("GET", job), ("GET", f"{job}/result"), ("DELETE", job)):
            yield exchange(connection, method, f"/v1/jobs/{path}", headers={"Authorization": right}).status


def form() -> bytes:
    body = b""
    for role, data in (("source", picture(1)), ("target", picture(2))):
        said = f'Content-Disposition: form-data; name="{role}"; filename="{NAME}.jpg"'
        body += f"--cut\r\n{said}\r\n\r\n".encode() + data + b"\r\n"
    return body + b"--cut--\r\n"


def sent_as(credential: str, body: bytes) -> tuple[bytes, dict[str, str]]:
    headers = {"Authorization": credential, "Content-Type": "multipart/form-data; boundary=cut"}
    return body, {**headers, "Idempotency-Key": f"for {NAME}"}


def post(connection: http.client.HTTPConnection, document: object, credential: str) -> int:
    headers = {"Authorization": credential, "Content-Type": "application/json"}
    return exchange(connection, "POST", "/v1/jobs", json.dumps(document).encode(), headers).status


def finish(s3: Any, job: str) -> None:
    """As publish ends a job."""
    key = keys.result("demo", f"{job}.jpg")
    image = ObjectRef(key, "0" * 64, len(picture(3)), "image/jpeg")
    ending = {"type": type_of("publish", "completed"), "cause": "c"}
    ending["data"] = records.write(Result(job, image, 64, 64, (), "", "2030-01-01T00:00:00Z"))
    s3.put_object(Bucket="wakeswap", Key=key, Body=picture(3))
    s3.put_object(Bucket="wakeswap", Key=keys.job("demo", job, "outcome.json"), Body=records.dumps(ending))


def notifications(intake: StageProcess) -> Iterator[int]:
    """Uploads: told by the bucket, with the right token and a wrong one, and by the broker."""
    for name in (f"{NAME}.job.json", "source.jpg", "broken.jpg", "gone.jpg", "a\r\n2026 CRITICAL admin logged in"):
        document = event_file("minio_put.json")
        document["Records"][0]["s3"]["bucket"]["name"] = "wakeswap"
        document["Records"][0]["s3"]["object"]["key"] = quote(f"{FOLDER}/{name}")
        body = json.dumps(document).encode()
        with closing(intake.connect()) as connection:
            for token in (TOKEN, WRONG):
                headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
                yield exchange(connection, "POST", "/events/s3", body, headers).status
        yield intake.deliver(Event(f"e-{quote(name)}", "aws:sqs", "dev.knative.eventing.aws-sqs", data=document)).status


def clock(intake: StageProcess) -> Iterator[int]:
    for prefix in (NAME, f"../{NAME}"):
        data = {"tenant": "demo", "prefix": f"{prefix}/"}
        ping = Event(f"ping-{len(prefix)}", f"/sources/{len(prefix)}", "dev.knative.sources.ping", data=data)
        yield intake.deliver(ping).status
    headers, body = encode_binary(event(Job(JOB, (), ObjectRef(f"{FOLDER}/x", "0" * 64, 1, "image/png"))))
    with closing(intake.connect()) as connection:
        yield exchange(connection, "POST", "/", body, {**headers, "ce-proof": WRONG}).status


def webhooks(world: World) -> str:
    with receiving() as receiver:
        receiver.status = 410
        hook = {"url": receiver.url(f"/hook?token={SIGNED}"), "allow_local": True}
        own = {
            "WAKESWAP_TENANTS": json.dumps({"demo": {"webhook": hook}}),
            "WAKESWAP_WEBHOOK_SECRETS": f"demo={WEBHOOK}",
        }
        with running(
            "notify",
            world.root,
            package="functions",
            **{**world.settings, "WAKESWAP_STORE_URL": f"file:{world.root}/objects", **own},
        ) as notify:
            notify.wait_ready(60)
            image = ObjectRef("tenants/demo/results/a.jpg", "0" * 64, 9, "image/jpeg")
            link = f"https://s3.example.com/{NAME}?X-Amz-Signature={SIGNED}"
            done = Result(JOB, image, 4, 3, (), link, "2030-01-01T00:00:00Z")
            assert notify.deliver(event(done, stage="publish")).status == 204
            receiver.status = 503
            assert notify.deliver(event(done, stage="publish", event_id="e-2")).status == 503
            return notify.log()

"""Answers of AWS that no S3 server at hand gives: a real client meets them from a small HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shared.errors import (
    InvalidCursorError,
    PreconditionFailedError,
    StorageError,
    StoreAccessDeniedError,
    StoreUnavailableError,
)
from shared.storage.s3 import S3Store
from tests.servers.fake_s3 import Answer, Cut, FakeS3, Refusal, fake_s3

REFUSED = b"""<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>InvalidArgument</Code><Message>The continuation token provided is incorrect</Message>
<ArgumentName>continuation-token</ArgumentName></Error>"""


class Refuses(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(400)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(REFUSED)))
        self.end_headers()
        self.wfile.write(REFUSED)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    yield S3Store("bucket")
    server.shutdown()
    server.server_close()


def test_a_cursor_that_was_never_given_out_is_the_callers_fault(store: S3Store) -> None:
    with pytest.raises(InvalidCursorError):
        store.list("tenants/demo/jobs/", cursor="tampered")
    with pytest.raises(StorageError):
        store.list("tenants/demo/jobs/")


DATA = bytes(range(256)) * 1000


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeS3]:
    monkeypatch.setattr("shared.storage.s3.FIRST_WAIT", 0.01)
    with fake_s3() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        server.objects["key"] = DATA
        yield server


def read(start: int = 0, size: int = len(DATA)) -> bytes:
    got = bytearray()
    S3Store("bucket").read_range("key", start, size, lambda position, piece: got.extend(piece))
    return bytes(got)


def test_a_range_that_was_cut_goes_on_where_it_broke(fake: FakeS3) -> None:
    fake.script = [Cut(100_000), Refusal(503, "SlowDown"), Cut(50_000)]
    assert read(10) == DATA[10:]
    spans = [request.split("=")[1] for request in fake.requests]
    assert spans == ["10-256009", "100010-255999", "100010-255999", "150010-255999"]


def test_a_range_that_is_always_cut_is_a_failure_that_may_pass(fake: FakeS3) -> None:
    fake.script = [Cut(1000)] * 9
    with pytest.raises(StoreUnavailableError):
        read()
    assert len(fake.requests) == 4


def test_an_object_that_changes_while_it_is_read_is_not_mixed(fake: FakeS3) -> None:
    def change() -> None:
        fake.objects["key"] = bytes(len(DATA))

    fake.script, fake.piece = [Cut(1000)], change
    with pytest.raises(PreconditionFailedError):
        read()


@pytest.mark.parametrize(
    ("refusal", "error", "said"),
    [
        (Refusal(403, "AccessDenied"), StoreAccessDeniedError, "AccessDenied"),
        (Refusal(403, "RequestTimeTooSkewed"), StoreAccessDeniedError, "clock"),
        (
            Refusal(301, "PermanentRedirect", {"x-amz-bucket-region": "eu-west-1"}),
            StorageError,
            "another region, eu-west-1; set AWS_REGION",
        ),
        (Refusal(404, "NoSuchBucket"), StorageError, "bucket does not exist"),
    ],
)
def test_what_stays_is_asked_once_and_named(
    fake: FakeS3, refusal: Refusal, error: type[StorageError], said: str
) -> None:
    fake.answer = lambda authorization: refusal
    with pytest.raises(error, match=said):
        read()
    assert len(fake.requests) <= (2 if refusal.status == 301 else 1), "boto3 looks once for the bucket's region"


def test_expired_credentials_are_loaded_again_once(fake: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(authorization: str) -> Answer:
        if "Credential=fresh/" in authorization:
            return None
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "fresh")
        return Refusal(400, "ExpiredToken")

    fake.answer = answer
    assert read() == DATA
    assert len(fake.requests) == 2
    fake.requests.clear()
    fake.answer = lambda authorization: Refusal(400, "ExpiredToken")
    with pytest.raises(StoreAccessDeniedError, match="expired"):
        read()
    assert len(fake.requests) == 2

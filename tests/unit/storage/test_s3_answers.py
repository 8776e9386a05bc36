"""Answers of AWS that no S3 server at hand gives: a real client meets them from a small HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shared.errors import InvalidCursorError, StorageError
from shared.storage.s3 import S3Store

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

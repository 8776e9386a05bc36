"""A small S3 over HTTP for what no real server says on demand: one bucket of objects and a script of wrong answers.

Only GET and HEAD of objects, with ranges and If-Match; signatures are not checked.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias

PIECE = 65536


@dataclass(frozen=True)
class Refusal:
    """An S3 error document."""

    status: int
    code: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cut:
    """The right answer, ended by a closed connection after so many bytes of it."""

    after: int


Answer: TypeAlias = Refusal | Cut | None
"""None: the right answer."""


class FakeS3:
    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.objects: dict[str, bytes] = {}
        self.script: list[Answer] = []
        """What the next requests get, one each; then the right answers."""
        self.answer: Callable[[str], Answer] = lambda authorization: None
        """Asked when the script is over, with the Authorization header."""
        self.piece: Callable[[], None] = lambda: None
        """Called before each piece of a body is sent."""
        self.requests: list[str] = []
        """Method, key and range of each."""
        self.sent = 0
        self.lock = threading.Lock()

    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }


@contextmanager
def fake_s3() -> Iterator[FakeS3]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    state = FakeS3(f"http://127.0.0.1:{server.server_port}")
    server.state = state  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        with suppress(ConnectionResetError):  # the killed client of a test, between two requests
            super().handle()

    def do_GET(self) -> None:
        state: FakeS3 = self.server.state  # type: ignore[attr-defined]
        key = self.path.split("?")[0].split("/", 2)[2]
        with state.lock:
            state.requests.append(f"{self.command} {key} {self.headers.get('Range', '')}".strip())
            answer = state.script.pop(0) if state.script else state.answer(self.headers.get("Authorization", ""))
        if isinstance(answer, Refusal):
            self._refuse(answer)
        elif key not in state.objects:
            self._refuse(Refusal(404, "NoSuchKey"))
        else:
            self._object(state, state.objects[key], answer.after if isinstance(answer, Cut) else None)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _refuse(self, refusal: Refusal) -> None:
        body = f'<?xml version="1.0"?><Error><Code>{refusal.code}</Code><Message>x</Message></Error>'.encode()
        self.send_response(refusal.status)
        for name, value in refusal.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _object(self, state: FakeS3, data: bytes, cut: int | None) -> None:
        etag = f'"{hashlib.md5(data).hexdigest()}"'
        if self.headers.get("If-Match", etag) != etag:
            self._refuse(Refusal(412, "PreconditionFailed"))
            return
        start, end = 0, len(data)
        if found := self.headers.get("Range"):
            first, _, last = found.removeprefix("bytes=").partition("-")
            start, end = int(first), min(len(data), int(last) + 1)
            if start >= len(data):
                self._refuse(Refusal(416, "InvalidRange"))
                return
        self.send_response(206 if found else 200)
        if found:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", etag)
        self.send_header("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            self._send(state, data[start : end if cut is None else min(end, start + cut)])
        self.close_connection = cut is not None

    def _send(self, state: FakeS3, body: bytes) -> None:
        try:
            for position in range(0, len(body), PIECE):
                state.piece()
                piece = body[position : position + PIECE]
                self.wfile.write(piece)
                with state.lock:
                    state.sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the killed client of a test

    def log_message(self, format: str, *args: object) -> None: ...

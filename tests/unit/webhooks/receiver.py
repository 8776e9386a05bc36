"""A webhook receiver: a real HTTP server on this machine that keeps what it gets."""

from __future__ import annotations

import base64
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from shared.tenancy.tenant import Webhook

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


def hook(url: str, *, local: bool = False, secret: str = SECRET) -> Webhook:
    return Webhook(url, secret, local)


class Receiver(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 204
        self.headers: dict[str, str] = {}
        self.body = b""
        self.drip = 0.0
        """Seconds between the bytes of an answer that never ends; 0: answer at once."""
        self.chunk = b""
        """What an endless answer gives as the size of its only chunk; empty: an answer of `body`."""
        self.sent = 0
        """Bytes of that chunk that went out."""
        self.seen: list[tuple[str, dict[str, str], bytes]] = []

    def url(self, path: str = "/hook", scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.server_address[1]}{path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        if self.server.drip:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while True:
                self.wfile.write(b"x")
                time.sleep(self.server.drip)
        self.send_response(self.server.status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        if self.server.chunk:
            self._flood()
            return
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def _flood(self) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(self.server.chunk + b"\r\n")
        for _ in range(1000):
            self.wfile.write(bytes(65_536))
            self.server.sent += 65_536

    def log_message(self, *args: object) -> None:
        """Nothing to standard error."""


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    server = Receiver()
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

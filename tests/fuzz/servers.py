"""The processes that are fuzzed: gunicorn as the product starts it, and a broker that takes everything."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil

from shared.storage.local import LocalStore
from tests.fuzz.sent import LIMIT_SECONDS, Answer
from tests.services.process import StageProcess, running
from tests.unit.jobs.world import picture

KEY, TOKEN = "key-of-demo-0123456789", "token-of-the-bucket"
_POLICY = {"max_concurrent": 1000, "max_batch": 1000, "jobs_per_minute": 100_000, "jobs_per_day": 1_000_000}
_SETTINGS = {
    "WAKESWAP_TENANTS": json.dumps({"demo": {"policy": _POLICY}}),
    "WAKESWAP_API_KEYS": f"demo={KEY}",
    "WAKESWAP_NOTIFICATION_TOKEN": TOKEN,
    "WAKESWAP_CONCURRENCY": "4",
    "WAKESWAP_TIMEOUT_SECONDS": "5",
    "WAKESWAP_UPLOAD_GRACE_SECONDS": "0",
    **dict.fromkeys(("WAKESWAP_RATE_PER_KEY", "WAKESWAP_RATE_PER_ADDRESS", "WAKESWAP_AUTH_FAILURES"), "0"),
    "WAKESWAP_RATE_NOTIFICATIONS": "0",
    "WAKESWAP_BATCH_SPREAD_SECONDS": "0",
    "WAKESWAP_LOG_LEVEL": "ERROR",
}


class Server:
    """One process, and a connection to it that is kept open."""

    def __init__(self, process: StageProcess) -> None:
        self.process = process
        self.jobs: list[str] = []
        """Ids that were given out."""
        self._connection: HTTPConnection | None = None

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Once more on a new connection when a kept one turns out to be closed."""
        begun = time.monotonic()
        for _ in range(2):
            try:
                return self._exchange(method, path, headers, body)
            except (HTTPException, ConnectionError):
                self.close()
        return Answer(0, "", b"", time.monotonic() - begun)

    def send_bytes(self, sent: bytes) -> Answer:
        """Whatever bytes on a connection of their own, then its end."""
        begun, received = time.monotonic(), b""
        with socket.create_connection(("127.0.0.1", self.process.port), timeout=LIMIT_SECONDS) as connection:
            try:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    received += piece
            except ConnectionError:
                pass  # closed by the server in mid-request: what it said before counts
        return _read(received, time.monotonic() - begun)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def memory(self) -> int:
        """Resident bytes of the worker: the largest of the master's children, as it is when nothing happens."""
        time.sleep(0.3)
        workers = psutil.Process(self.process.process.pid).children()
        return max(worker.memory_info().rss for worker in workers)

    def _exchange(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        begun = time.monotonic()
        if self._connection is None:
            self._connection = self.process.connect(LIMIT_SECONDS)
        self._connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            self._connection.putheader(name, value.encode("latin-1", "replace"))
        if body or method not in ("GET", "HEAD", "DELETE"):
            self._connection.putheader("Content-Length", str(len(body)))
        self._connection.endheaders(body or None)
        response = self._connection.getresponse()
        read = response.read()
        if response.will_close:
            self.close()
        return Answer(response.status, response.headers.get("Content-Type", ""), read, time.monotonic() - begun)


def _read(received: bytes, seconds: float) -> Answer:
    """The first answer of a connection."""
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if not lines[0].startswith("HTTP/1.1 "):
        return Answer(0, "", received, seconds)
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    size = int(fields.get("content-length", len(body)))
    return Answer(int(lines[0].split()[1]), fields.get("content-type", ""), body[:size], seconds)


@contextmanager
def servers(root: Path) -> Iterator[dict[str, Server]]:
    """`intake`, whose door takes events of others, `relay`, a stage of payloads, and `dead_letter`."""
    with ExitStack() as stack:
        for name in ("a.jpg", "b.jpg"):
            LocalStore(root / "objects").put(f"tenants/demo/inbox/{name}", picture(9))
        sink = stack.enter_context(_broker())
        made = {}
        for name, package in (("intake", "functions"), ("relay", "tests.services"), ("dead_letter", "functions")):
            settings = {**_SETTINGS, "K_SINK": "" if name == "relay" else sink}
            made[name] = Server(stack.enter_context(running(name, root, package=package, **settings)))
            stack.callback(made[name].close)
        for server in made.values():
            server.process.wait_ready(LIMIT_SECONDS)
        yield made


class _Broker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def _broker() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Broker) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()

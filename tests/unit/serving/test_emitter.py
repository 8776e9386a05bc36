"""Publishing to the broker, against a real HTTP server on this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from shared.errors import BrokerUnavailableError
from shared.serving import emitter
from shared.serving.emitter import Emitter
from tests.unit.serving.support import event


class Broker(ThreadingHTTPServer):
    """Answers with `statuses`, one after another, then with 202."""

    daemon_threads = True

    def __init__(self, statuses: tuple[int, ...], port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.statuses = list(statuses)
        self.received: list[tuple[str, dict[str, str], bytes]] = []
        self.connections: list[socket.socket] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/default/broker"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Broker

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.connection)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append((self.path, headers, body))
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def broker(*statuses: int, port: int = 0) -> Iterator[Broker]:
    server = Broker(statuses, port)
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        for connection in server.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emitter, "PAUSE_SECONDS", 0.01)


def test_an_event_is_posted_in_binary_mode() -> None:
    with broker() as server:
        Emitter(server.address, connections=1).publish(event())
    path, headers, body = server.received[0]
    assert path == "/default/broker"
    assert headers["ce-id"] == "e-1"
    assert headers["content-type"] == "application/json"
    assert b"job-00000001" in body


def test_one_connection_carries_many_events() -> None:
    with broker() as server:
        sender = Emitter(server.address, connections=1)
        for number in range(5):
            sender.publish(event(event_id=f"e-{number}"))
    assert len(server.received) == 5
    assert len(server.connections) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 404, 408, 409, 429])
def test_what_may_pass_is_tried_again_with_the_same_event(status: int) -> None:
    with broker(status, status) as server:
        Emitter(server.address, connections=1).publish(event())
    assert [headers["ce-id"] for _, headers, _ in server.received] == ["e-1"] * 3


def test_a_broker_that_stays_away_is_a_transient_error() -> None:
    with broker(*[503] * 20) as server, pytest.raises(BrokerUnavailableError):
        Emitter(server.address, connections=1).publish(event())
    assert len(server.received) == emitter.ATTEMPTS


@pytest.mark.parametrize("status", [400, 401, 413, 307])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    with broker(status) as server, pytest.raises(BrokerUnavailableError, match=str(status)):
        Emitter(server.address, connections=1).publish(event())
    assert len(server.received) == 1


def test_nobody_listening_is_a_transient_error() -> None:
    with broker() as server:
        address = server.address
    with pytest.raises(BrokerUnavailableError):
        Emitter(address, connections=1).publish(event())


def test_a_broker_that_was_restarted_meanwhile_gets_the_next_event() -> None:
    with broker() as server:
        sender = Emitter(server.address, connections=1)
        sender.publish(event())
    with broker(port=server.server_port) as again:
        sender.publish(event(event_id="e-2"))
    assert [headers["ce-id"] for _, headers, _ in again.received] == ["e-2"]

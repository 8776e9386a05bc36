"""A small internet: names, public numbers, and one real https server behind all of them on this machine."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import trustme

from shared.net.pinned import Way

PUBLIC = "93.184.216.34"
HOST = "pictures.example.com"
Answer = Callable[[BaseHTTPRequestHandler], None]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.close_connection = True
        self.server.routes[self.path.partition("?")[0]](self)

    def log_message(self, *args: object) -> None:
        """Nothing to standard error."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.routes: dict[str, Answer] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that hangs up is part of the tests."""


@dataclass
class Internet:
    """What the process under test can reach: every packet goes through `dial`, every name through `resolve`."""

    server: _Server
    trust: ssl.SSLContext
    names: dict[str, Iterator[Sequence[str]]] = field(default_factory=dict)
    """Answers of the name server, one after the other; any other name has PUBLIC."""
    resolved: list[str] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)

    def resolve(self, host: str, port: int) -> Sequence[str]:
        self.resolved.append(host)
        return next(self.names[host]) if host in self.names else [PUBLIC]

    def dial(self, ip: str, port: int, seconds: float) -> socket.socket:
        self.dialled.append((ip, port))
        return socket.create_connection(("127.0.0.1", self.server.server_address[1]), seconds)

    @property
    def way(self) -> Way:
        return Way(self.resolve, self.dial, self.trust)

    def serve(self, path: str, body: bytes = b"", status: int = 200, length: int | None = None, **more: str) -> str:
        """Answer `path` so; headers as keywords. Its address at HOST."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in {"Content-Length": str(len(body) if length is None else length), **more}.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()
            handler.wfile.write(body)

        return self.serve_by(path, answer)

    def serve_by(self, path: str, answer: Answer) -> str:
        self.server.routes[path] = answer
        return f"https://{HOST}{path}"


@contextmanager
def internet(authority: trustme.CA, *names: str) -> Iterator[Internet]:
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(*names).configure_cert(serving)
    authority.configure_trust(trusting)
    server = _Server()
    server.socket = serving.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Internet(server, trusting)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

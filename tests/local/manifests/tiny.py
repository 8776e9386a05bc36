"""A real little service for the platform's tests: a WSGI application without any dependency.

Paths: /env?NAME, /sleep?SECONDS (answers with the most that were inside at once), /nap?SECONDS (answers with
nothing), /crash (kills the whole service), /stream (chunks), /broken (dies after the first chunk), /health/readiness
(503 until READY_AFTER seconds), /health/liveness (500 once /sick was called), /event (CloudEvents are written, one
line each, to the file EVENTS); anything else is an echo.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

STARTED = time.monotonic()
LOCK = threading.Lock()
INSIDE = [0, 0]
SICK = threading.Event()

Environ = dict[str, Any]
Start = Callable[[str, list[tuple[str, str]]], object]


def app(environ: Environ, start: Start) -> Iterable[bytes]:
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    handler = HANDLERS.get(path, echo)
    status, body = handler(environ, query)
    if isinstance(body, bytes):
        headers = [("Content-Length", str(len(body))), ("X-Pid", str(os.getpid())), ("Set-Cookie", "a=1")]
        start(status, [*headers, ("Set-Cookie", "b=2")])
        return [body]
    start(status, [("X-Pid", str(os.getpid()))])
    return body


def echo(environ: Environ, query: str) -> tuple[str, bytes]:
    body = environ["wsgi.input"].read()
    facts = {
        "method": environ["REQUEST_METHOD"],
        "path": environ["RAW_URI"],
        "host": environ["HTTP_HOST"],
        "connection": environ.get("HTTP_CONNECTION", ""),
        "named": environ.get("HTTP_X_NAMED", ""),
        "own": environ.get("HTTP_X_OWN", ""),
        "length": len(body),
    }
    return "200 OK", json.dumps(facts).encode()


def env(environ: Environ, query: str) -> tuple[str, bytes]:
    return "200 OK", os.environ.get(query, "").encode()


def sleep(environ: Environ, query: str) -> tuple[str, bytes]:
    with LOCK:
        INSIDE[0] += 1
        INSIDE[1] = max(INSIDE)
    time.sleep(float(query))
    with LOCK:
        INSIDE[0] -= 1
    return "200 OK", str(INSIDE[1]).encode()


def nap(environ: Environ, query: str) -> tuple[str, bytes]:
    time.sleep(float(query))
    return "204 No Content", b""


def crash(environ: Environ, query: str) -> tuple[str, bytes]:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(30)
    return "200 OK", b"still here"


def stream(environ: Environ, query: str) -> tuple[str, Iterable[bytes]]:
    return "200 OK", (f"{number}\n".encode() * 10_000 for number in range(10))


def broken(environ: Environ, query: str) -> tuple[str, Iterable[bytes]]:
    def chunks() -> Iterable[bytes]:
        yield b"first"
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)

    return "200 OK", chunks()


def readiness(environ: Environ, query: str) -> tuple[str, bytes]:
    ready = time.monotonic() - STARTED >= float(os.environ.get("READY_AFTER", "0"))
    return ("200 OK", b"ok") if ready else ("503 Service Unavailable", b"loading")


def liveness(environ: Environ, query: str) -> tuple[str, bytes]:
    return ("500 Internal Server Error", b"sick") if SICK.is_set() else ("200 OK", b"ok")


def sick(environ: Environ, query: str) -> tuple[str, bytes]:
    SICK.set()
    return "200 OK", b"now sick"


def event(environ: Environ, query: str) -> tuple[str, bytes]:
    names = {key[8:].lower(): value for key, value in environ.items() if key.startswith("HTTP_CE_")}
    body = environ["wsgi.input"].read().decode()
    with open(os.environ["EVENTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps({**names, "data": body}) + "\n")
    return "204 No Content", b""


HANDLERS: dict[str, Callable[[Environ, str], tuple[str, bytes] | tuple[str, Iterable[bytes]]]] = {
    "/env": env,
    "/sleep": sleep,
    "/crash": crash,
    "/nap": nap,
    "/stream": stream,
    "/broken": broken,
    "/health/readiness": readiness,
    "/health/liveness": liveness,
    "/sick": sick,
    "/event": event,
}

"""A stage as a real process: gunicorn on a socket that the test holds, as the activator does it, with real signals."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from shared.events.codec import encode_binary
from shared.events.event import Event
from tests.signing import EVENT_KEYS, signed

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """Of a problem document."""
        return str(json.loads(self.body)["code"])


class StageProcess:
    """`stage` of tests/services, or of another package; `root` holds its objects and its log."""

    def __init__(
        self, stage: str, root: Path, listener: socket.socket, *, package: str = "tests.services", **environ: str
    ) -> None:
        self.port: int = listener.getsockname()[1]
        self.log_path = root / f"{stage}.log"
        command = [
            *(sys.executable, "-m", "gunicorn", "--config", "shared/serving/gunicorn.conf.py"),
            f"shared.serving.app:create('{stage}', package='{package}')",
        ]
        settings = {
            "GUNICORN_CMD_ARGS": f"--bind fd://{listener.fileno()}",
            "WAKESWAP_STORE_URL": f"file:{root}/objects",
            "WAKESWAP_TENANTS": '{"demo": {}}',
            "WAKESWAP_EVENT_KEYS": EVENT_KEYS,
            **environ,
        }
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **settings},
                pass_fds=[listener.fileno()],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def connect(self, timeout: float = 60.0) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(self, method: str, path: str) -> Answer:
        with closing(self.connect()) as connection:
            return exchange(connection, method, path)

    def deliver(self, event: Event, timeout: float = 60.0) -> Answer:
        with closing(self.connect(timeout)) as connection:
            return send(connection, event)

    def readiness(self) -> Answer:
        return self.call("GET", "/health/readiness")

    def wait_ready(self, seconds: float = 20.0) -> None:
        ends = time.monotonic() + seconds
        while self.readiness().status != 200:
            assert time.monotonic() < ends, self.log()
            time.sleep(0.02)

    def terminate(self) -> None:
        """What a kubelet does first."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Master and worker at once, as when the power goes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def log(self) -> str:
        return self.log_path.read_text()


@contextmanager
def running(stage: str, root: Path, **environ: str) -> Iterator[StageProcess]:
    with listening() as listener:
        process = StageProcess(stage, root, listener, **environ)
        try:
            yield process
        finally:
            if process.process.poll() is None:
                process.kill()


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.set_inheritable(True)
        yield listener


def send(connection: http.client.HTTPConnection, event: Event) -> Answer:
    headers, body = encode_binary(signed(event))
    return exchange(connection, "POST", "/", body, headers)


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request; the connection stays open when the server keeps it."""
    connection.request(method, path, body, dict(headers or {}))
    response = connection.getresponse()
    return Answer(response.status, dict(response.getheaders()), response.read())

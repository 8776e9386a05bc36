"""A real redis for tests (Debian's `redis-server`), on a free loopback port, nothing kept on disk."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

PASSWORD = "of-the-tests-0123456789"


class Redis:
    """`start()`, `kill()` (kill -9) and `stop()`; it starts again on the same port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self._port}/0"

    def start(self) -> None:
        program = shutil.which("redis-server")
        assert program, "redis-server is not installed: apt-get install redis-server (.ci/run does)"
        options = [f"port {self._port}", "bind 127.0.0.1", f"requirepass {PASSWORD}", "save ''"]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, "-"], cwd=self._folder, stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        assert self._process.stdin
        with self._process.stdin as configuration:
            configuration.write("\n".join(options).encode())
        self._await()

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process
        self._process.terminate()
        self._process.wait(timeout=30)

    def _await(self) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection:
                    connection.sendall(b"PING\r\n")
                    if connection.recv(100):
                        return  # that it wants a password is an answer
            except OSError:
                time.sleep(0.02)
        raise TimeoutError((self._folder / "redis.log").read_text()[-2000:])

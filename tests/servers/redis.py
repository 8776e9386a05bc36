"""A real redis for tests (Debian's `redis-server`), on a free loopback port, nothing kept on disk."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

from tests.servers.program import Program, free_ports

PASSWORD = "of-the-tests-0123456789"


class Redis:
    """`start()`, `kill()` (kill -9) and `stop()`; it starts again on the same port."""

    def __init__(self, folder: Path) -> None:
        (self._port,) = free_ports(1)
        self._program = Program(folder / "redis.log")
        self.kill, self.stop = self._program.kill, self._program.stop

    @property
    def address(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self._port}/0"

    def start(self) -> None:
        program = shutil.which("redis-server")
        assert program, "redis-server is not installed: apt-get install redis-server (.ci/run does)"
        options = [f"port {self._port}", "bind 127.0.0.1", f"requirepass {PASSWORD}", "save ''"]
        self._program.run([program, "-"], self._answers, told="\n".join(options).encode())

    def _answers(self) -> bool:
        """That it wants a password is an answer."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return bool(connection.recv(100))

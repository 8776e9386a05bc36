"""A server program that a test starts: its process and its log, killed, stopped and waited for until it answers."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

SECONDS = 60


class Program:
    """`run()` begins it, `answers()` says whether it is there; it may be run again after `kill()` (-9) or `stop()`."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self, command: list[str], answers: Callable[[], bool], told: bytes = b"", env: Mapping[str, str] | None = None
    ) -> None:
        """Return once it answers. `told`: its standard input; OSError from `answers` means not yet."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._log.parent, stdin=subprocess.PIPE, stdout=log, stderr=log, env=env
            )
        assert self._process.stdin
        with self._process.stdin as given:
            given.write(told)
        self._await(answers)

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process
        self._process.terminate()
        self._process.wait(timeout=30)

    def _await(self, answers: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                if answers():
                    return
            except OSError:
                time.sleep(0.02)
        raise TimeoutError(self._log.read_text()[-2000:])


def free_ports(count: int) -> list[int]:
    """All different: each is held until the last is found."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]

"""A link of a fixed rate to a server on this machine: a relay on loopback that moves bytes inside the kernel.

All connections share the rate from the server to the client; the other direction is free. Bytes go from socket to
socket by splice(2), so that the relay takes little of what the two ends need. Linux only.
"""

from __future__ import annotations

import fcntl
import os
import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

PIPE = 1 << 20
"""Bytes a pipe takes at once."""


class Link:
    """`address` leads to the server; closed with `close`."""

    def __init__(self, server: str, mb_s: float) -> None:
        """`server`: its http address; `mb_s`: millions of bytes a second."""
        found = urlsplit(server)
        self._server = (found.hostname, found.port)
        self._seconds = 1e-6 / mb_s
        """A byte."""
        self._free = time.monotonic()
        self._turn = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client = self._listener.accept()[0]
                server = socket.create_connection(self._server)
                for ends in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._move, args=ends, daemon=True).start()

    def _move(self, origin: socket.socket, target: socket.socket, paced: bool) -> None:
        read, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE)
        with suppress(OSError):  # one of them is gone
            while count := os.splice(origin.fileno(), write, PIPE):
                if paced:
                    self._wait(count)
                while count:
                    count -= os.splice(read, target.fileno(), count)
        os.close(read)
        os.close(write)
        for end in (origin, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _wait(self, count: int) -> None:
        """Until the link has carried so many bytes more."""
        with self._turn:
            self._free = max(self._free, time.monotonic() - 0.01) + count * self._seconds
            until = self._free
        time.sleep(max(0.0, until - time.monotonic()))

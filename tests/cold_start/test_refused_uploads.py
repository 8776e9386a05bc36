"""Who is refused hears so, however much of the request was still to come: with a real gunicorn and real sockets."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from tests.services.process import running

BODY = b"x" * (8 << 20)
HEAD = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: intake\r\nAuthorization: Bearer wk_wrong\r\n"
    b"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n%s\r\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
def test_a_wrong_key_is_told_with_megabytes_under_way(tmp_path: Path, more: bytes) -> None:
    with running("intake", tmp_path, package="functions", WAKESWAP_AUTH_FAILURES="0") as intake:
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", intake.port), timeout=60.0) as caller:
                caller.sendall(HEAD % (len(BODY), more) + BODY[: len(BODY) // 2])
                time.sleep(0.2)  # the refusal is there before the rest is
                caller.sendall(BODY[len(BODY) // 2 :])
                time.sleep(0.2)  # and read only then: after a reset it would be gone
                assert caller.recv(65536).startswith(b"HTTP/1.1 401 ")

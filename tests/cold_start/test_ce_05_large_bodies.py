"""CE-05: what 60 MB on the wire cost a real gunicorn: an early refusal, and no memory."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.services.process import StageProcess, running
from tests.unit.serving.support import event

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads peaks from Linux's /proc"),
]
BODY = 60_000_000
MIB = 2**20


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageProcess]:
    with running("relay", tmp_path_factory.mktemp("large")) as process:
        process.wait_ready()
        process.deliver(event())
        yield process


def peak(process: StageProcess) -> int:
    """Bytes: the most that the worker ever held."""
    (worker,) = psutil.Process(process.process.pid).children()
    status = Path(f"/proc/{worker.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def push(process: StageProcess, headers: bytes, pieces: Iterator[bytes]) -> tuple[bytes, int]:
    """The answer's first line, and how many bytes could be sent before the server closed."""
    with socket.create_connection(("127.0.0.1", process.port), timeout=30) as wire:
        wire.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/cloudevents+json\r\n" + headers)
        sent, answer = 0, b""
        with suppress(ConnectionError):
            for piece in pieces:
                wire.sendall(piece)
                sent += len(piece)
        with suppress(ConnectionError):
            answer = wire.recv(65_536)
        return answer.partition(b"\r\n")[0], sent


@pytest.mark.parametrize("chunked", [False, True], ids=["declared", "chunked"])
def test_ce_05_sixty_megabytes_are_refused_unread(process: StageProcess, chunked: bool) -> None:
    before = peak(process)
    piece = bytes(MIB)
    if chunked:
        headers, piece = b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + piece + b"\r\n"
    else:
        headers = f"Content-Length: {BODY}\r\n\r\n".encode()
    answer, sent = push(process, headers, (piece for _ in range(BODY // MIB)))
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413 "), "a sender that is still sending may miss the answer"
    # 16 MB are taken after the refusal, and what the kernel's buffers hold counts as sent: 31 MB were seen under load
    assert sent < BODY * 0.75, "the server closed long before the end"
    assert peak(process) - before < 20 * MIB
    assert process.deliver(event(event_id=f"after-{chunked}")).status == 200


def test_ce_05_whoever_waits_for_the_answer_gets_it(process: StageProcess) -> None:
    answer, _ = push(process, f"Content-Length: {BODY}\r\n\r\n".encode(), iter([b"{"]))
    assert answer.startswith(b"HTTP/1.1 413 ")

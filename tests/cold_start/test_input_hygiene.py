"""The front door under gunicorn as the product configures it: no body without end, no decoder in its own process."""

from __future__ import annotations

import io
import json
import socket
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.services.process import Answer, StageProcess, exchange, running
from tests.unit.imaging.test_fuzz import SAMPLES
from tests.unit.serving.test_emitter import broker

pytestmark = pytest.mark.slow

KEY = "key-of-demo-0123456789"
HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "multipart/form-data; boundary=cut"}
HELPERS = ("shared.isolated.tasks",)


@pytest.fixture
def intake(tmp_path: Path) -> Iterator[StageProcess]:
    settings = {
        "WAKESWAP_API_KEYS": f"demo={KEY}",
        "WAKESWAP_CONCURRENCY": "8",
        "WAKESWAP_TENANTS": json.dumps(
            {"demo": {"policy": {"max_concurrent": 1000, "max_bytes": 200_000, "max_video_bytes": 200_000}}}
        ),
    }
    with (
        broker() as server,
        running("intake", tmp_path, package="functions", K_SINK=server.address, **settings) as made,
    ):
        made.wait_ready(60)
        yield made


def part(name: str, data: bytes) -> bytes:
    return (
        f'--cut\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.bin"\r\n\r\n'.encode()
        + data
        + b"\r\n"
    )


def post(process: StageProcess, picture: bytes) -> Answer:
    body = part("source", picture) + part("target", picture) + b"--cut--\r\n"
    connection = process.connect()
    try:
        return exchange(connection, "POST", "/v1/jobs", body, HEADERS)
    finally:
        connection.close()


def helpers(process: StageProcess) -> list[psutil.Process]:
    family = psutil.Process(process.process.pid).children(recursive=True)
    return [member for member in family if set(HELPERS) & set(member.cmdline())]


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def until_gone(processes: list[psutil.Process]) -> None:
    ends = time.monotonic() + 60
    while not all(map(gone, processes)):
        assert time.monotonic() < ends
        time.sleep(0.02)


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("picture.jpg", SAMPLES["jpeg"])
    return buffer.getvalue()


@pytest.mark.parametrize("killed", [False, True])
def test_pictures_of_every_format_by_many_threads(intake: StageProcess, killed: bool) -> None:
    assert helpers(intake) == [], "started when the first such picture comes"
    expected = dict.fromkeys(("jpeg", "png", "heic", "avif", "tiff", "tiff lzw"), 202)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            sent = {name: pool.submit(post, intake, SAMPLES[name]) for name in expected}
            cut = pool.submit(post, intake, SAMPLES["heic"][:60])
            assert {name: answer.result().status for name, answer in sent.items()} == expected
            assert cut.result().status == 422
    started = helpers(intake)
    assert len(started) == 1
    assert started[0].children() == []
    if killed:
        intake.kill()
    else:
        intake.terminate()
        intake.process.wait(60)
    until_gone(started)


def test_archives_and_playlists_are_named(intake: StageProcess) -> None:
    for data, found in ((zipped(), "a ZIP archive"), (b"#EXTM3U\nhttp://169.254.169.254/\n", "a playlist (M3U8)")):
        answer = post(intake, data)
        problem = json.loads(answer.body)
        assert (answer.status, problem["code"], problem["context"]) == (415, "unsupported_media_type", {"found": found})
    assert helpers(intake) == []


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_without_end_is_cut_at_what_the_tenant_may_send(intake: StageProcess, chunked: bool) -> None:
    """Ten pictures of 200,000 bytes at most; of a chunked body nobody knows the length beforehand."""
    length = "Transfer-Encoding: chunked" if chunked else "Content-Length: 90000000"
    lines = ["POST /v1/jobs HTTP/1.1", "Host: x", *(f"{name}: {value}" for name, value in HEADERS.items()), length]
    sent, answer = 0, b""
    with socket.create_connection(("127.0.0.1", intake.port), timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        try:
            block = part("source", b"")[:-2]
            while sent < 90_000_000:
                connection.sendall(f"{len(block):x}\r\n".encode() + block + b"\r\n" if chunked else block)
                sent, block = sent + len(block), bytes(65_536)
        except OSError:
            pass  # it was enough
        try:
            answer = connection.recv(65_536)
        except OSError:
            answer = b""  # the answer was overtaken by the closing
    assert sent < 30_000_000
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413 ")
    assert post(intake, SAMPLES["jpeg"]).status == 202

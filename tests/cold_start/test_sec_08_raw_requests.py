"""SEC-08: what hostile bytes on the wire do, under gunicorn as the product configures it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.events.codec import encode_binary
from shared.events.event import Event
from tests.services.process import StageProcess, running
from tests.signing import signed
from tests.unit.serving.support import event

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
SECOND = b"GET /health/liveness HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StageProcess]:
    with running("relay", tmp_path_factory.mktemp("raw"), WAKESWAP_MAX_EVENT_BYTES="4096") as started:
        started.wait_ready()
        yield started


def answers(process: StageProcess, sent: bytes) -> tuple[list[int], bool]:
    """The statuses of every answer to `sent`, and whether the server closed the connection within the second."""
    received = b""
    with socket.create_connection(("127.0.0.1", process.port), timeout=1) as connection:
        connection.sendall(sent)
        closed = False
        try:
            while not closed:
                part = connection.recv(65536)
                received, closed = received + part, not part
        except TimeoutError:
            pass
    lines = [line for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    return [int(line.split()[1]) for line in lines], closed


@pytest.mark.parametrize("name", ["smuggle_te_cl.http", "smuggle_te_invalid.http"])
def test_sec_08_smuggled_requests_of_the_field_cases(process: StageProcess, name: str) -> None:
    statuses, closed = answers(process, (DATA / "http" / name).read_bytes())
    assert statuses in ([400], [501])
    assert closed


@pytest.mark.parametrize(
    "headers",
    [
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 5\r\nContent-Length: 0\r\n",
        b"Content-Length: 5, 5\r\n",
        b"Content-Length: +5\r\n",
        b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked, chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"X: a\r\n Transfer-Encoding: chunked\r\n",
    ],
)
def test_sec_08_no_disagreement_about_where_a_body_ends(process: StageProcess, headers: bytes) -> None:
    """One refusal, the connection closed, and what looks like a second request never answered."""
    statuses, closed = answers(process, HEAD + headers + b"\r\n0\r\n\r\n" + SECOND)
    assert statuses in ([400], [501])
    assert closed


@pytest.mark.parametrize(
    "body", [b"5x\r\nhello\r\n", b"5\r\nhello, more\r\n", b"5\r\nhel", b"g\r\n", b"5\r\nhello\r\n0\r\nbad\r\n\r\n"]
)
def test_sec_08_a_broken_chunk_ends_the_connection(process: StageProcess, body: bytes) -> None:
    """The parser finds out while the application reads. Found by fuzzing: it was a 500, and what follows a request."""
    headers = b"Content-Type: application/cloudevents+json\r\nTransfer-Encoding: chunked\r\n\r\n"
    statuses, closed = answers(process, HEAD + headers + body + b"\r\n" * 3 + SECOND)
    assert statuses == [400]
    assert closed


def lines(sent: Event) -> tuple[bytes, bytes]:
    """An event's header lines and its body."""
    fields, body = encode_binary(sent)
    fields["Content-Length"] = str(len(body))
    return b"".join(f"{name}: {value}\r\n".encode() for name, value in fields.items()), body


def test_sec_08_a_header_with_an_underscore_is_dropped(process: StageProcess) -> None:
    """`ce_tenantid` and `ce-tenantid` would be one variable in WSGI; the first of them is anyone's to send."""
    names, body = lines(signed(event(event_id="underscore")))
    forged = b"ce_tenantid: stranger\r\nce_id: forged\r\nX_Forwarded_For: 10.0.0.1\r\n"
    for headers in (names + forged, forged + names):
        statuses, _ = answers(process, HEAD + headers + b"Connection: close\r\n\r\n" + body)
        assert statuses == [200]
    without, body = lines(signed(event(event_id="underscore", tenant="")))
    statuses, _ = answers(process, HEAD + without + forged + b"Connection: close\r\n\r\n" + body)
    assert statuses == [422], "no tenant: the forged one is not seen"
    assert "stranger" not in process.log()


def test_sec_08_the_underscore_request_of_the_field_cases(process: StageProcess) -> None:
    request = (DATA / "http" / "header_underscore.http").read_bytes()
    statuses, _ = answers(process, request)
    assert statuses == [404], "relay has no such path; intake's tests ask it with a key"
    assert "t-globex" not in process.log()


def test_sec_08_a_forwarded_address_is_not_believed(process: StageProcess) -> None:
    sent = b"GET /nowhere HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.9.8.7\r\nX-Forwarded-Proto: https\r\n"
    statuses, _ = answers(process, sent + b"SCRIPT_NAME: /admin\r\nConnection: close\r\n\r\n")
    assert statuses == [404]
    assert "10.9.8.7" not in process.log()


def test_a_body_over_the_limit_is_refused_before_it_is_sent(process: StageProcess) -> None:
    """The answer comes although most of the body never does: nobody waits for it, and nothing keeps it."""
    declared = HEAD + b"Content-Type: application/cloudevents+json\r\nContent-Length: 1000000000\r\n\r\n"
    assert answers(process, declared + b"x" * 1000)[0] == [413]
    chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    chunked = HEAD + b"Content-Type: application/cloudevents+json\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert answers(process, chunked + chunk * 3)[0] == [413]


def test_an_event_without_a_body_is_told_so(process: StageProcess) -> None:
    raw = (DATA / "event" / "ce_binary_empty_body.http").read_bytes()
    statuses, _ = answers(process, raw)
    assert statuses == [400]


def test_logs_hold_no_query_and_no_secret(process: StageProcess) -> None:
    sent = b"GET /v1?token=hunter2 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer hunter3\r\nConnection: close\r\n\r\n"
    assert answers(process, sent) == ([404], True)
    log = process.log()
    assert '"message": "GET /v1 404"' in log
    assert "hunter" not in log
    assert all(json.loads(line) for line in log.splitlines()), "every line is JSON"

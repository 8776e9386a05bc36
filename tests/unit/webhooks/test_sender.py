"""Deliveries to a real server: signed, pinned to one number, no redirect followed, and read as the broker needs it."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator

import pytest
import trustme
from standardwebhooks import Webhook as Verifier

from shared.errors import ConfigError, TransientError
from shared.net.pinned import Way
from shared.rejections import DeliveryRefusedError
from shared.webhooks import sender
from tests.unit.webhooks.receiver import SECRET, Receiver, hook, running

HOST = "hooks.example.com"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running() as server:
        yield server


def send(server: Receiver, body: str = '{"type":"job.completed"}', seconds: float = 10.0) -> int:
    return sender.send(hook(server.url("/hook?x=1"), local=True), "msg-1", body, seconds=seconds)


def test_signature_verifies(receiver: Receiver) -> None:
    assert send(receiver, '{"name": "Zo\u00eb"}') == 204
    ((path, headers, body),) = receiver.seen
    assert Verifier(SECRET).verify(body, headers) == {"name": "Zo\u00eb"}
    assert (path, headers["webhook-id"], headers["content-type"]) == ("/hook?x=1", "msg-1", "application/json")
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 5
    assert headers["host"] == f"127.0.0.1:{receiver.server_address[1]}"


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_taken(receiver: Receiver, status: int) -> None:
    receiver.status = status
    assert send(receiver) == status


@pytest.mark.parametrize("status", [400, 401, 404, 410, 422])
def test_never(receiver: Receiver, status: int) -> None:
    receiver.status = status
    with pytest.raises(DeliveryRefusedError) as caught:
        send(receiver)
    assert caught.value.context == {"status": status}


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_later(receiver: Receiver, status: int) -> None:
    receiver.status = status
    with pytest.raises(TransientError):
        send(receiver)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_sec_04_no_redirect_is_followed(receiver: Receiver, status: int) -> None:
    receiver.status, receiver.headers = status, {"Location": receiver.url("/stolen")}
    with pytest.raises(DeliveryRefusedError):
        send(receiver)
    assert [path for path, *_ in receiver.seen] == ["/hook?x=1"]


def test_big_answers_are_not_read(receiver: Receiver) -> None:
    receiver.status, receiver.body = 200, bytes(50_000_000)
    begun = time.monotonic()
    assert send(receiver) == 200
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("size", [b"-1", b"-5"])
def test_a_chunk_that_lies_about_its_size_is_not_read_to_its_end(receiver: Receiver, size: bytes) -> None:
    receiver.status, receiver.chunk = 200, size
    assert send(receiver) == 200
    assert receiver.sent < 20_000_000  # what lay in the sockets' buffers


def test_answer_that_drips_is_cut(receiver: Receiver) -> None:
    receiver.drip = 0.05
    begun = time.monotonic()
    with pytest.raises(TransientError):
        send(receiver, seconds=0.5)
    assert time.monotonic() - begun < 3


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(TransientError):
        sender.send(hook(f"http://127.0.0.1:{port}/", local=True), "m", "{}")


def test_who_listens_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = hook(f"https://127.0.0.1:{server.getsockname()[1]}/", local=True)
        with pytest.raises(TransientError):
            sender.send(silent, "m", "{}", seconds=0.3)


def test_without_a_secret_nothing_is_sent(receiver: Receiver) -> None:
    with pytest.raises(ConfigError):
        sender.send(hook(receiver.url(), local=True, secret=""), "m", "{}")
    assert receiver.seen == []


def test_local_addresses_only_where_allowed(receiver: Receiver) -> None:
    for url in (receiver.url(), receiver.url(scheme="https")):
        with pytest.raises(DeliveryRefusedError):
            sender.send(hook(url), "m", "{}")
    assert receiver.seen == []


@pytest.mark.parametrize("numbers", [["10.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::1"], ["169.254.169.254"]])
def test_sec_04_every_number_of_a_name_must_be_public(numbers: list[str]) -> None:
    with pytest.raises(DeliveryRefusedError):
        sender.send(hook(f"https://{HOST}/"), "m", "{}", way=Way(lambda host, port: numbers))


def test_unknown_name_may_be_known_later() -> None:
    with pytest.raises(TransientError):
        sender.send(hook("https://does-not-exist.invalid-example.test/"), "m", "{}")
    with pytest.raises(TransientError):
        sender.send(hook(f"https://{HOST}/"), "m", "{}", way=Way(lambda host, port: []))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def contexts(authority: trustme.CA, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    serving, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(name).configure_cert(serving)
    authority.configure_trust(trusting)
    return serving, trusting


def test_sec_04_name_is_resolved_once_and_the_certificate_is_for_the_name(authority: trustme.CA) -> None:
    serving, trusting = contexts(authority, HOST)
    answers = iter([["127.0.0.1"]])  # asked a second time, it would fail

    with running(serving) as server:
        target = hook(server.url(scheme="https", host=HOST), local=True)
        assert sender.send(target, "m", "{}", way=Way(lambda host, port: next(answers), tls=trusting)) == 204
    assert server.seen[0][1]["host"].startswith(HOST)


def test_wrong_certificate_is_not_talked_to(authority: trustme.CA) -> None:
    serving, trusting = contexts(authority, "other.example.com")
    with running(serving) as server:
        target = hook(server.url(scheme="https", host=HOST), local=True)
        for trust in (trusting, None):
            with pytest.raises(TransientError):
                sender.send(target, "m", "{}", way=Way(lambda host, port: ["127.0.0.1"], tls=trust))
    assert server.seen == []

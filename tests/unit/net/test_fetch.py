"""SEC-04: pictures by https address, from a real server over TLS; every name and every connection is on record."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import trustme

from shared.errors import OverloadedError, PayloadTooLargeError, TransientError, WakeswapError
from shared.net.fetch import Bounds, Fetcher
from shared.net.pinned import Way, resolve
from shared.refusals import FetchUnavailableError
from shared.rejections import FetchFailedError, ImageTooLargeError, UrlNotAllowedError
from tests.unit.net.site import HOST, PUBLIC, Internet, internet

CASES = json.loads((Path(__file__).parents[2] / "data" / "http" / "ssrf_urls.json").read_bytes())
HOSTS = ("*.example.com", "example.net")
EVERY_HOST = (*HOSTS, "*.test", "*.svc", "localhost", "127.1", "10.0.0.1", "169.254.169.254", "public.test", "8.8.8.8")
PICTURE = b"\xff\xd8\xff" + bytes(range(256)) * 4


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def web(authority: trustme.CA) -> Iterator[Internet]:
    with internet(authority, HOST, "example.com", "cdn.example.com", "example.net", PUBLIC) as site:
        yield site


def fetch(web: Internet, *urls: str, bounds: Bounds | None = None, **more: object) -> list[bytes]:
    wanted = {"hosts": HOSTS, "max_bytes": 100_000, "seconds": 30.0, **more}
    files = Fetcher(bounds or Bounds(), web.way).fetch(urls, **wanted)  # type: ignore[arg-type]
    assert list(files) == list(urls)
    found = []
    for file in files.values():
        with file:
            found.append(file.read())
    return found


def refusal(web: Internet, url: str, **more: object) -> WakeswapError:
    with pytest.raises(WakeswapError) as caught:
        fetch(web, url, **more)  # type: ignore[arg-type]
    return caught.value


def test_fetched(web: Internet) -> None:
    url = web.serve("/a.jpg", PICTURE)
    assert fetch(web, url + "?x=1") == [PICTURE]
    ((path, sent),) = web.server.asked
    assert path == "/a.jpg?x=1"
    assert sent == {
        "host": HOST,
        "user-agent": "wakeswap",
        "connection": "close",
        "accept": "image/*, video/*",
        "accept-encoding": "identity",
    }
    assert (web.resolved, web.dialled) == ([HOST], [(PUBLIC, 443)])


def test_several_and_without_a_length(web: Internet) -> None:
    def chunked(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")

    assert fetch(web, web.serve("/a.jpg", PICTURE), web.serve_by("/b", chunked)) == [PICTURE, b"abcdefg"]
    assert fetch(web) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["why"])
@pytest.mark.parametrize("as_https", [False, True])
def test_sec_04_no_packet_leaves_and_all_answers_are_the_same(
    web: Internet, case: dict[str, str], as_https: bool
) -> None:
    url = case["url"].replace("http://", "https://", 1) if as_https else case["url"]
    web.names |= {"public.test": itertools.repeat(["10.0.0.1"]), "rebind.test": itertools.repeat(["127.0.0.1"])}
    error = refusal(web, url, hosts=EVERY_HOST)
    assert (type(error), error.detail, error.context) == (UrlNotAllowedError, "The address is not allowed", {})
    assert (error.status, error.code) == (422, "url_not_allowed")
    assert web.dialled == []


@pytest.mark.parametrize(
    "host", ["example.org", "notexample.com", "example.com.evil.org", "www.example.net", "8.8.8.8"]
)
def test_sec_04_hosts_that_the_policy_does_not_name_are_not_even_resolved(web: Internet, host: str) -> None:
    assert type(refusal(web, f"https://{host}/a.jpg")) is UrlNotAllowedError
    assert type(refusal(web, f"https://{HOST}/a.jpg", hosts=())) is UrlNotAllowedError
    assert (web.resolved, web.dialled) == ([], [])


def test_every_address_is_judged_before_the_first_is_asked(web: Internet) -> None:
    with pytest.raises(UrlNotAllowedError):
        fetch(web, web.serve("/a.jpg", PICTURE), "https://10.0.0.1/")
    assert web.resolved == []


@pytest.mark.parametrize(
    "found",
    [["10.0.0.1"], [PUBLIC, "127.0.0.1"], ["::1"], ["fd00:ec2::254"], ["100.64.0.1"], ["64:ff9b::a9fe:a9fe"], []],
)
def test_sec_04_every_number_must_be_public_and_a_missing_name_tells_nothing(web: Internet, found: list[str]) -> None:
    web.names[HOST] = itertools.repeat(found)
    error = refusal(web, f"https://{HOST}/a.jpg")
    assert (type(error), error.detail) == (UrlNotAllowedError, "The address is not allowed")
    assert web.dialled == []
    assert not any(number in str(error) + str(error.context) for number in found)


def test_sec_04_a_name_that_changes_its_number_is_asked_once(web: Internet) -> None:
    web.names[HOST] = iter([[PUBLIC], ["127.0.0.1"]])
    assert fetch(web, web.serve("/a.jpg", PICTURE)) == [PICTURE]
    assert (web.resolved, web.dialled) == ([HOST], [(PUBLIC, 443)])


@pytest.mark.parametrize(
    "location",
    [
        "https://169.254.169.254/latest/meta-data/",
        "http://pictures.example.com/a.jpg",
        "https://pictures.example.com:8443/a.jpg",
        "https://user:pw@pictures.example.com/a.jpg",
        "https://evil.org/a.jpg",
        "//evil.org/a.jpg",
        "file:///etc/passwd",
        "https://inside.example.com/",
        "https://[::ffff:10.0.0.1]/",
        "gopher://127.0.0.1:6379/_x",
        "https://[pictures.example.com",
        "//[::1",
    ],
)
def test_sec_04_redirects_are_judged_like_the_first_address(web: Internet, location: str) -> None:
    web.names["inside.example.com"] = itertools.repeat(["10.0.0.7"])
    error = refusal(web, web.serve("/go", status=302, Location=location))
    assert (type(error), error.detail) == (UrlNotAllowedError, "The address is not allowed")
    assert web.dialled == [(PUBLIC, 443)]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_within_the_allowed_hosts(web: Internet, status: int) -> None:
    web.serve("/deep/a.jpg", PICTURE)
    web.serve("/next", status=status, Location="deep/a.jpg#there")
    first = web.serve("/go", status=status, Location="https://cdn.example.com/next")
    assert fetch(web, first) == [PICTURE]
    assert [sent["host"] for _, sent in web.server.asked] == [HOST, "cdn.example.com", "cdn.example.com"]
    assert web.resolved == [HOST, "cdn.example.com", "cdn.example.com"]


def test_redirects_end(web: Internet) -> None:
    assert type(refusal(web, web.serve("/round", status=302, Location="/round"))) is FetchFailedError
    assert len(web.server.asked) == 1 + Bounds().redirects


@pytest.mark.parametrize(
    ("status", "kind"), [(404, FetchFailedError), (403, FetchFailedError), (206, FetchFailedError)]
)
def test_other_answers_are_no_picture(web: Internet, status: int, kind: type[WakeswapError]) -> None:
    error = refusal(web, web.serve("/a.jpg", PICTURE, status=status))
    assert (type(error), error.context) == (kind, {"status": status})


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again_later(web: Internet, status: int) -> None:
    error = refusal(web, web.serve("/a.jpg", status=status))
    assert (type(error), error.status) == (FetchUnavailableError, 503)


def test_bodies_over_the_limit_are_not_read(web: Internet) -> None:
    sent = []

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while True:
            handler.wfile.write(bytes(65_536))
            sent.append(65_536)

    promised = refusal(web, web.serve("/big", length=100_001))
    assert (type(promised), promised.context) == (ImageTooLargeError, {"limit_bytes": 100_000})
    assert type(refusal(web, web.serve_by("/endless", endless))) is ImageTooLargeError
    assert sum(sent) < 20_000_000  # what lay in the sockets' buffers
    assert fetch(web, web.serve("/edge", bytes(100_000))) == [bytes(100_000)]


@pytest.mark.parametrize("size", [b"-1", b"-5", b"x", b"", b"f" * 40])
def test_a_chunk_that_lies_about_its_size_is_no_way_around_the_limit(web: Internet, size: bytes) -> None:
    """Python reads `-1` as a number, and then everything that comes into memory at once."""
    sent = []

    def lie(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.wfile.write(size + b"\r\n")
        for _ in range(1000):
            handler.wfile.write(bytes(65_536))
            sent.append(65_536)

    assert type(refusal(web, web.serve_by("/chunked", lie))) in (ImageTooLargeError, FetchUnavailableError)
    assert sum(sent) < 20_000_000  # what lay in the sockets' buffers


def test_all_pictures_of_a_request_share_one_limit(web: Internet) -> None:
    pair = [web.serve("/a", bytes(600)), web.serve("/b", bytes(401))]
    with pytest.raises(PayloadTooLargeError):
        fetch(web, *pair, bounds=Bounds(total_bytes=1000))
    assert fetch(web, *pair, bounds=Bounds(total_bytes=1001)) == [bytes(600), bytes(401)]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "x-gzip", "gzip, identity"])
def test_nothing_is_unpacked(web: Internet, encoding: str) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    assert type(refusal(web, web.serve("/a.jpg", bomb, Content_Encoding=encoding))) is FetchFailedError


def test_a_body_shorter_than_promised_is_no_picture(web: Internet) -> None:
    assert type(refusal(web, web.serve("/short", PICTURE, length=len(PICTURE) + 1))) is FetchUnavailableError


@pytest.mark.parametrize("dripping", ["head", "body", "redirects"])
def test_what_drips_is_cut(web: Internet, dripping: str) -> None:
    gone = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        if dripping == "redirects":
            gone.wait(0.4)
            handler.send_response(302)
            handler.send_header("Location", "/slow")
            handler.end_headers()
            return
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"\r\n" if dripping == "body" else b"X: "))
        while not gone.wait(0.05):
            handler.wfile.write(b"x")

    begun = time.monotonic()
    error = refusal(web, web.serve_by("/slow", drip), bounds=Bounds(seconds=1.0, redirects=1000))
    gone.set()
    assert (type(error), time.monotonic() - begun < 30) == (FetchUnavailableError, True)


def test_a_name_server_that_drips_is_not_waited_for(web: Internet) -> None:
    gone = threading.Event()

    def slow(host: str, port: int) -> list[str]:
        gone.wait(60)
        return [PUBLIC]

    with pytest.raises(TransientError):
        Fetcher(Bounds(seconds=0.3), Way(slow, web.dial, web.trust)).fetch([f"https://{HOST}/"], HOSTS, 10, 30)
    gone.set()
    assert web.dialled == []


def test_certificate_must_be_for_the_name(web: Internet, authority: trustme.CA) -> None:
    with internet(authority, "example.net") as other:
        assert type(refusal(other, other.serve("/a.jpg", PICTURE))) is FetchUnavailableError
        assert other.server.asked == []
    web.trust = Way().tls  # type: ignore[assignment]  # the system's, which does not know this authority
    assert type(refusal(web, web.serve("/a.jpg", PICTURE))) is FetchUnavailableError
    assert web.server.asked == []


def test_next_number_when_one_does_not_answer(web: Internet) -> None:
    web.names[HOST] = itertools.repeat(["1.1.1.1", PUBLIC])

    def dial(ip: str, port: int, seconds: float) -> object:
        if ip == "1.1.1.1":
            raise ConnectionRefusedError
        return web.dial(ip, port, seconds)

    way = Way(web.resolve, dial, web.trust)  # type: ignore[arg-type]
    url = web.serve("/a.jpg", PICTURE)
    with Fetcher(Bounds(), way).fetch([url], HOSTS, 100_000, 30)[url] as file:
        assert file.read() == PICTURE


def test_a_slow_host_holds_no_more_than_its_share(web: Internet) -> None:
    gone, entered = threading.Event(), threading.Event()

    def slow(handler: BaseHTTPRequestHandler) -> None:
        entered.set()
        gone.wait(60)
        handler.send_response(404)
        handler.end_headers()

    fetcher = Fetcher(Bounds(at_once=1), web.way)
    url = web.serve_by("/slow", slow)

    def wait() -> None:
        with suppress(WakeswapError):
            fetcher.fetch([url], HOSTS, 10, 30)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert entered.wait(60)
    with pytest.raises(OverloadedError):
        fetcher.fetch([url], HOSTS, 10, 30)
    gone.set()
    waiting.join(60)
    with pytest.raises(FetchFailedError):
        fetcher.fetch([url], HOSTS, 10, 30)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by Linux's /proc")
def test_nothing_stays_open_or_on_disk(web: Internet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    good, short = web.serve("/a.jpg", PICTURE), web.serve("/short", PICTURE, length=2000)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        refusal(web, short)
        with pytest.raises(FetchUnavailableError):
            fetch(web, good, short)
        assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) < before + 20  # the server's own ends close a moment later


def test_http_only_by_setting(web: Internet) -> None:
    with pytest.raises(UrlNotAllowedError):
        fetch(web, f"http://{HOST}/a.jpg")
    with pytest.raises(UrlNotAllowedError):
        fetch(web, f"http://{HOST}:8080/a.jpg", bounds=Bounds(plain_http=True))
    with pytest.raises(TransientError):  # goes out on port 80, where this server speaks TLS
        fetch(web, f"http://{HOST}/a.jpg", bounds=Bounds(plain_http=True))
    assert web.dialled == [(PUBLIC, 80)]


def test_system_names() -> None:
    assert "127.0.0.1" in resolve("localhost", 443) or "::1" in resolve("localhost", 443)
    with suppress(TransientError):  # where there is no name server
        assert resolve("does-not-exist.invalid", 443) == []

"""SEC-04: which addresses may be called for a tenant, told from the text and from what the name resolves to."""

from __future__ import annotations

import json
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.net import address
from shared.rejections import UrlNotAllowedError
from tests.unit.jobs.world import DATA

CASES = json.loads((DATA / "http" / "ssrf_urls.json").read_bytes())


URLS = [case["url"] for case in CASES]
AS_HTTPS = [url.replace("http://", "https://", 1) for url in URLS if ".test/" not in url]
"""Not refused for plain http alone. The two public names are refused by what they resolve to: test_fetch.py."""


@pytest.mark.parametrize("url", [*URLS, *AS_HTTPS])
def test_sec_04_refused_before_anything_is_resolved(url: str) -> None:
    with pytest.raises(UrlNotAllowedError) as caught:
        address.examine(url)
    assert (caught.value.detail, caught.value.context) == ("The address is not allowed", {})


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com:8443/",
        "https://example.com:80/",
        "https://example.com:99999/",
        "https://134744072/",
        "https://8.8.8/",
        "https://0x8.8.8.8/",
        "https://8.8.8.010/",
        "https://user@example.com/",
        "https://example.com\\@10.0.0.1/",
        "https://exam ple.com/",
        "https://example.com/\r\nHost: x",
        "https://ex\u00e4mple.com/",
        "https:///path",
        "https://[::1]/",
        "https://[fe80::1%25eth0]/",
        "https://[::ffff:8.8.8.8]/",
        "https://[2002:0808:0808::1]/",
        "https://[2001:0:0808::1]/",
        "https://[64:ff9b::808:808]/",
        "https://[::808:808]/",
        "https://[fec0::1]/",
        "https://192.88.99.1/",
        "https://224.0.0.1/",
        "https://240.0.0.1/",
        "https://metadata.google.internal/",
        "https://printer.local/",
        "https://intranet/",
        "",
    ],
)
def test_refused(url: str) -> None:
    with pytest.raises(UrlNotAllowedError):
        address.examine(url)


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("https://example.com", "example.com", "/"),
        ("https://Hooks.Example.COM:443/a/b?c=d", "hooks.example.com", "/a/b?c=d"),
        ("https://xn--exmple-cua.com/@user", "xn--exmple-cua.com", "/@user"),
        ("https://8.8.8.8/x", "8.8.8.8", "/x"),
        ("https://[2606:4700:4700::1111]/x", "2606:4700:4700::1111", "/x"),
    ],
)
def test_allowed(url: str, host: str, path: str) -> None:
    found = address.examine(url)
    assert (found.host, found.port, found.path, found.tls) == (host, 443, path, True)


def test_host_header() -> None:
    assert address.examine("https://[2606:4700:4700::1111]/").netloc == "[2606:4700:4700::1111]"
    assert address.examine("http://localhost:8000/", allow_local=True).netloc == "localhost:8000"
    assert address.examine("http://localhost/", allow_local=True).netloc == "localhost"


INSIDE = """10.0.0.1 172.16.0.1 192.168.1.1 127.0.0.53 169.254.169.254 100.64.0.1 0.0.0.0 ::1 fd00::1 ::ffff:10.0.0.1
    fe80::1%eth0 64:ff9b::a00:1 198.18.0.1 192.0.2.1 255.255.255.255 nonsense"""


@pytest.mark.parametrize("number", INSIDE.split())
def test_numbers_that_a_name_must_not_lead_to(number: str) -> None:
    with pytest.raises(UrlNotAllowedError):
        address.check(number)


@given(st.ip_addresses(v=4))
def test_an_ipv4_number_and_every_disguise_of_it(number: object) -> None:
    plain = ip_address(str(number))
    decimal = int(plain)
    hidden = [
        f"https://{decimal}/",
        f"https://{decimal:#x}/",
        f"https://[::ffff:{plain}]/",
        f"https://[64:ff9b::{plain}]/",
    ]
    for url in hidden:
        with pytest.raises(UrlNotAllowedError):
            address.examine(url)
    if not plain.is_global:
        with pytest.raises(UrlNotAllowedError):
            address.check(str(plain))


@given(st.text() | st.text().map(lambda text: f"https://{text}"))
def test_nothing_but_our_own_error(url: str) -> None:
    try:
        assert address.examine(url).tls
    except UrlNotAllowedError:
        return

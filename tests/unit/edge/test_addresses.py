"""Which address is the client's, behind so many proxies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.serving.addresses import client, of_this_machine

PEER = "192.0.2.1"


@pytest.mark.parametrize(
    ("forwarded", "proxies", "found"),
    [
        ("", 0, PEER),
        ("198.51.100.7", 0, PEER),
        ("198.51.100.7", 1, "198.51.100.7"),
        ("203.0.113.9, 198.51.100.7", 1, "198.51.100.7"),
        ("203.0.113.9,198.51.100.7", 2, "203.0.113.9"),
        ("203.0.113.9, 198.51.100.7", 3, PEER),
        ("", 1, PEER),
        ("unknown", 1, PEER),
        ("198.51.100.7, ", 1, PEER),
        ("198.51.100.7;203.0.113.9", 1, PEER),
        ("198.51.100.256", 1, PEER),
        ("0x7f.1", 1, PEER),
        ("198.51.100.7:4711", 1, "198.51.100.7"),
        ("[2001:db8:1:2:3::4]:4711", 1, "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::9", 1, "2001:db8:1:2::/64"),
        ('"[2001:db8:1:2::4]"', 1, "2001:db8:1:2::/64"),
        ("::ffff:198.51.100.7", 1, "198.51.100.7"),
        ("fe80::1%eth0", 1, "fe80::/64"),
    ],
)
def test_the_client_stands_where_the_outermost_trusted_proxy_wrote_it(forwarded: str, proxies: int, found: str) -> None:
    assert client(PEER, forwarded, proxies) == found


def test_the_other_end_of_the_connection_is_read_alike() -> None:
    assert client("::ffff:198.51.100.7", "", 0) == "198.51.100.7"
    assert client("2001:db8:1:2::4", "", 0) == "2001:db8:1:2::/64"
    assert client("", "x", 1) == "", "a Unix socket"


@given(st.text(), st.text(), st.integers(0, 20))
def test_nothing_in_a_header_breaks_it(peer: str, forwarded: str, proxies: int) -> None:
    assert isinstance(client(peer, forwarded, proxies), str)
    assert client(peer, forwarded, 0) == client(peer, "", 0)


@given(st.lists(st.ip_addresses(v=4).map(str), max_size=5))
def test_what_a_client_writes_itself_changes_nothing(own: list[str]) -> None:
    assert client(PEER, ", ".join([*own, "198.51.100.7", "203.0.113.9"]), 2) == "198.51.100.7"


@pytest.mark.parametrize(
    ("address", "own"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("", True), ("192.0.2.1", False), ("2001:db8::/64", False)],
)
def test_addresses_of_this_machine(address: str, own: bool) -> None:
    assert of_this_machine(address) == own


def test_ipv6_loopback_is_told_from_its_network() -> None:
    assert of_this_machine(client("::1", "", 0))
    assert not of_this_machine(client("::2", "", 0))

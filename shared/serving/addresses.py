"""Which address a request comes from, behind proxies whose number is known. Pure text.

Every proxy adds the address of whoever called it at the right end of X-Forwarded-For; what stands further left than
the trusted proxies wrote is the client's own invention.
"""

from __future__ import annotations

import ipaddress
import re

_WITH_PORT = re.compile(r"\[(?P<six>[0-9A-Fa-f:.%\w]+)\](?::[0-9]{1,5})?|(?P<four>[0-9.]+):[0-9]{1,5}")
_PREFIX = 64
"""Bits of an IPv6 address that its owner does not choose (RFC 6177): one client has all that lie below."""


def client(peer: str, forwarded: str, proxies: int) -> str:
    """The client's address, or the network that counts as one client.

    `peer`: the other end of the connection; `forwarded`: the values of X-Forwarded-For with commas between;
    `proxies`: how many are trusted. What cannot be read there, or is not there, leaves the peer.
    """
    entries = forwarded.split(",")
    found = _read(entries[-proxies]) if 0 < proxies <= len(entries) else None
    return str(found or _read(peer) or peer)


def of_this_machine(address: str) -> bool:
    """Whether this is a proxy beside us (Knative's queue-proxy is) or somebody at this desk, and no client's."""
    try:
        return ipaddress.ip_network(address).is_loopback
    except ValueError:
        return True  # a Unix socket


def _read(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | ipaddress.IPv6Network | None:
    text = text.strip().strip('"')
    if with_port := _WITH_PORT.fullmatch(text):
        text = with_port["six"] or with_port["four"]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and not address.is_loopback:
        return address.ipv4_mapped or ipaddress.IPv6Network((int(address), _PREFIX), strict=False)
    return address

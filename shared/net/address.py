"""Which addresses may be called on a tenant's behalf: a pure decision about text and IP numbers.

One judge for webhooks and for pictures named by address. Knows the error tree. Resolving is the caller's; nothing
here opens a connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from shared.rejections import UrlNotAllowedError

IpAddress: TypeAlias = IPv4Address | IPv6Address

_CARRIERS = (
    IPv6Network("::/96"),  # IPv4-compatible
    IPv6Network("::ffff:0:0/96"),  # IPv4-mapped
    IPv6Network("::ffff:0:0:0/96"),  # IPv4-translated
    IPv6Network("64:ff9b::/96"),  # NAT64
    IPv6Network("64:ff9b:1::/48"),  # NAT64, local use
    IPv6Network("2001::/32"),  # Teredo
    IPv6Network("2002::/16"),  # 6to4
)
"""IPv6 that may lead to any IPv4 address behind the check's back: no public host lives only there."""
_NOT_FOR_US = (IPv6Network("fec0::/10"), IPv4Network("192.88.99.0/24"))
"""Site-local and the 6to4 relay, which `is_global` lets pass."""
_INSIDE_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "svc", "cluster", "arpa")
"""Last labels of names that only mean something inside a network."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_LAST = re.compile(r"[a-z][a-z0-9-]*")
"""A name's last label starts with a letter; one that starts with a digit is an IPv4 number in some disguise."""


@dataclass(frozen=True)
class Target:
    """An address that was found fit to be resolved."""

    host: str
    """Lower case, without brackets."""
    port: int
    path: str
    """With the query; never empty."""
    tls: bool

    @property
    def netloc(self) -> str:
        """The Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """What relative addresses are relative to."""
        return f"{'https' if self.tls else 'http'}://{self.netloc}{self.path}"


def examine(url: str, *, allow_local: bool = False, plain_http: bool = False) -> Target:
    """Take an address apart.

    Without `allow_local`: https on port 443 only, or with `plain_http` also http on port 80; a full public name or a
    plain IP number. The same error for every reason, so that nobody can map a network with it. Raises
    UrlNotAllowedError.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UrlNotAllowedError from None
    host = (parts.hostname or "").lower()
    plain = re.fullmatch(r"[!-~]+", url) and "\\" not in url and "#" not in url and "@" not in parts.netloc
    schemes = ("https", "http") if allow_local or plain_http else ("https",)
    if not plain or parts.scheme not in schemes or not host:
        raise UrlNotAllowedError
    tls = parts.scheme == "https"
    usual = 443 if tls else 80
    if not allow_local and (port not in (None, usual) or not _public_host(host)):
        raise UrlNotAllowedError
    return Target(host, port or usual, _path(parts), tls)


def listed(host: str, patterns: Iterable[str]) -> bool:
    """Whether a host is among those named; `*.example.com` means example.com and every host below it."""
    for pattern in map(str.lower, patterns):
        name = pattern.removeprefix("*.")
        if host == name or (name != pattern and host.endswith(f".{name}")):
            return True
    return False


def check(address: str, *, allow_local: bool = False) -> str:
    """A resolved IP number when it may be called. Raises UrlNotAllowedError."""
    ip = _ip(address.partition("%")[0])
    if ip is None or not (allow_local or public(ip)):
        raise UrlNotAllowedError
    return address


def public(ip: IpAddress) -> bool:
    """Whether an IP number is somewhere on the internet and can only be there.

    `is_global` is the base: unlike `is_private` it also refuses the shared space 100.64.0.0/10.
    """
    if ip.is_multicast or ip.is_reserved or ip.is_unspecified or not ip.is_global:
        return False
    return not any(ip.version == net.version and ip in net for net in (*_CARRIERS, *_NOT_FOR_US))


def _public_host(host: str) -> bool:
    ip = _ip(host)
    if ip is not None:
        return public(ip)
    labels = host.split(".")
    if len(labels) < 2 or not all(_LABEL.fullmatch(label) for label in labels) or not _LAST.fullmatch(labels[-1]):
        return False
    return labels[-1] not in _INSIDE_NAMES


def _ip(text: str) -> IpAddress | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _path(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

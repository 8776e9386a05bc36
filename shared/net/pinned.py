"""A connection to exactly those IP numbers that were checked, with TLS for the name: how tenants' hosts are called.

The name is resolved once and every number it resolves to must be public; a second, different answer of the name
server is never asked for. Only the standard library, so that the stages that call out stay light.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from typing import TYPE_CHECKING

from shared.errors import TransientError
from shared.net import address

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from shared.net.address import Target

Resolver = Callable[[str, int], Sequence[str]]
Dial = Callable[[str, int, float], socket.socket]
_MISSING = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
_TRIED = 3
"""Numbers of a name that are tried one after the other."""


def resolve(host: str, port: int) -> list[str]:
    """All IP numbers of a name in the system's order; none where no such name exists.

    Raises TransientError when the name servers give no answer now.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno in _MISSING:
            return []
        raise TransientError("The name cannot be resolved now.") from error
    except (OSError, UnicodeError) as error:
        raise TransientError("The name cannot be resolved now.") from error
    return [str(entry[4][0]) for entry in found]


def dial(ip: str, port: int, seconds: float) -> socket.socket:
    """A TCP connection. Raises OSError."""
    return socket.create_connection((ip, port), seconds)


@dataclass(frozen=True)
class Way:
    """The way out of this machine; tests put their own name server and wires in."""

    resolver: Resolver = resolve
    dial: Dial = dial
    tls: ssl.SSLContext | None = None
    """The context to trust; None: the system's (of which OpenSSL's own SSL_CERT_FILE may be a part)."""


def numbers(target: Target, way: Way, seconds: float, *, allow_local: bool = False) -> list[str]:
    """The checked numbers of a target's name, none if there is no such name.

    Raises UrlNotAllowedError if one of them must not be called, TransientError when there is no answer in time.
    """
    pool = ThreadPoolExecutor(1, "resolve")  # the system's resolver knows no time limit
    try:
        found = pool.submit(way.resolver, target.host, target.port).result(seconds)
    except TimeoutError as error:
        raise TransientError("The name cannot be resolved now.") from error
    finally:
        pool.shutdown(wait=False)
    return [address.check(ip, allow_local=allow_local) for ip in found]


class Pinned(HTTPConnection):
    """One conversation, entered as a context and cut after `seconds` in all, however its bytes drip."""

    def __init__(self, target: Target, ips: Sequence[str], seconds: float, way: Way) -> None:
        super().__init__(target.host, target.port, timeout=seconds)
        self._target, self._ips, self._way, self._seconds = target, ips[:_TRIED], way, seconds
        self._expired = False
        self._wire: socket.socket | None = None  # http.client lets go of its own once the head has been read
        self._answer: HTTPResponse | None = None
        self._clock = threading.Timer(seconds, self._cut)
        self._clock.daemon = True

    def __enter__(self) -> Self:
        self._clock.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._clock.cancel()
        self.close()
        if self._answer is not None:
            self._answer.close()

    def ask(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> HTTPResponse:
        """The head of the answer. Raises OSError and HTTPException; after reading the body, call `check`."""
        self.putrequest(method, self._target.path, skip_host=True, skip_accept_encoding=True)
        fixed = {"Host": self._target.netloc, "User-Agent": "wakeswap", "Connection": "close"}
        for name, value in {**fixed, **headers}.items():
            self.putheader(name, value)
        self.endheaders(body)
        self._answer = self.getresponse()
        self.check()
        return self._answer

    def check(self) -> None:
        """Raise TimeoutError when the conversation was cut: what was cut off reads like an answer that ended."""
        if self._expired:
            raise TimeoutError("The time is over.")

    def connect(self) -> None:
        self.sock = self._wire = self._dialled()
        if self._target.tls:
            context = self._way.tls or ssl.create_default_context()
            wrapped = context.wrap_socket(self.sock, server_hostname=self._target.host, do_handshake_on_connect=False)
            self.sock = self._wire = wrapped
            self.check()
            wrapped.do_handshake()
        self.check()

    def _dialled(self) -> socket.socket:
        *others, last = self._ips
        for ip in others:
            with suppress(OSError):
                return self._way.dial(ip, self._target.port, self._seconds / len(self._ips))
        return self._way.dial(last, self._target.port, self._seconds / len(self._ips))

    def _cut(self) -> None:
        self._expired = True
        if self._wire is not None:
            with suppress(OSError):  # it ended by itself just now
                self._wire.shutdown(socket.SHUT_RDWR)

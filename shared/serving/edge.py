"""The front door's threshold: who sends a request is known, is allowed this, and does not ask too often.

Whoever has a right key or token is limited by that, wherever it comes from; everyone else by the address it comes
from. An address that sent too many wrong ones is refused altogether for a while, also with a right one: otherwise
the answer would tell a guesser that a guess was right, and each guess would cost us a check. Not counted as wrong:
no key at all, and a token that the issuer signed but that is not for us or no longer good, which is a client at fault
and no guesser. Nor is an address of this very machine ever blocked: it is a proxy's, and behind it are all clients.

Knows flask, who callers are and the rates.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from flask import Request, Response, g

from shared.errors import UnauthorizedError
from shared.refusals import InsufficientScopeError, InvalidTokenError, RateLimitedError
from shared.serving import addresses, identity
from shared.serving.audited import FrontAudit
from shared.serving.rates import Quota, Rates
from shared.tenancy.caller import Caller
from shared.tenancy.directory import Directory
from shared.tenancy.tokens import Tokens

T = TypeVar("T")

_DETAILS = {
    "key": "Too many requests with this key or token.",
    "address": "Too many requests from this address without a valid key or token.",
    "notifications": "Too many notifications.",
    "block": "Too many wrong keys or tokens came from this address; for a while nothing is taken from there.",
}


@dataclass(frozen=True)
class Edge:
    """Without anything: API keys only, and no limits."""

    tokens: Tokens | None = None
    rates: Rates | None = None
    proxies: int = 0
    """How many stand in front and are trusted."""
    audit: FrontAudit = field(default_factory=FrontAudit)
    """Is told whom this turns away."""

    def caller(self, request: Request, tenants: Directory) -> Caller:
        """Who sent it, and may send it, and may send it now.

        Raises UnauthorizedError, InvalidTokenError, InsufficientScopeError, RateLimitedError and
        TokenKeysUnavailableError.
        """
        found = self._known(request, lambda: identity.known(request, tenants, self.tokens))
        with self._told(tenant=found.tenant.name, by=found.key_id):
            self._count("key", found.key_id)
            identity.permit(request, found)
        return found

    def notifier(self, request: Request, token: str) -> None:
        """Let in who has the operator's token for notifications. Raises UnauthorizedError, RateLimitedError."""
        self._known(request, lambda: _compare(identity.bearer(request), token))
        with self._told(by="notifications"):
            self._count("notifications", "")

    def tell(self, response: Response) -> Response:
        """Put where the caller stands with its limit into the answer."""
        quota: Quota | None = g.get("quota")
        if quota is not None:
            response.headers.extend(quota.headers())
        return response

    def _known(self, request: Request, check: Callable[[], T]) -> T:
        address = addresses.client(request.remote_addr or "", request.headers.get("X-Forwarded-For", ""), self.proxies)
        with self._told(address=address):
            self._admit(address)
            try:
                return check()
            except UnauthorizedError as error:
                if "Authorization" in request.headers:
                    self._note(address, error)
                self._count("address", address)
                raise

    @contextmanager
    def _told(self, *, tenant: str = "", by: str = "", address: str = "") -> Iterator[None]:
        """Have it put on record whom a limit, a block or a scope turns away. A wrong key alone is no decision."""
        try:
            yield
        except (RateLimitedError, InsufficientScopeError) as error:
            self.audit.turned_away(error, tenant=tenant, by=by, address=address)
            raise

    def _admit(self, address: str) -> None:
        if self.rates and not addresses.of_this_machine(address) and (block := self.rates.blocked(address)):
            raise _limited(block)

    def _note(self, address: str, error: UnauthorizedError) -> None:
        signed = isinstance(error, InvalidTokenError) and error.signed
        if self.rates and not signed and not addresses.of_this_machine(address):
            self.rates.failed(address)

    def _count(self, rule: str, who: str) -> None:
        quota = self.rates.take(rule, who) if self.rates else None
        if quota is None:
            return
        g.quota = quota
        if not quota.passed:
            raise _limited(quota)


def _limited(quota: Quota) -> RateLimitedError:
    g.quota = quota
    return RateLimitedError(_DETAILS[quota.name], retry_after=quota.wait, context={"policy": quota.name})


def _compare(given: str, token: str) -> None:
    if not hmac.compare_digest(given.encode(), token.encode()):
        raise UnauthorizedError

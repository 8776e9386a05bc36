"""Who sent a request: the one place where a credential becomes a caller.

Knows flask and the tenants.
"""

from __future__ import annotations

import re

from flask import Request

from shared.errors import UnauthorizedError
from shared.tenancy.caller import READ, WRITE, Caller
from shared.tenancy.directory import Directory
from shared.tenancy.tokens import LOOKS_LIKE, Tokens

_BEARER = re.compile(r"Bearer +([!-~]+) *", re.IGNORECASE)
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def bearer(request: Request) -> str:
    """The token of the Authorization header. Raises UnauthorizedError."""
    found = _BEARER.fullmatch(request.headers.get("Authorization", ""))
    if found is None:
        raise UnauthorizedError
    return found[1]


def known(request: Request, tenants: Directory, tokens: Tokens | None = None) -> Caller:
    """Who sent it, by API key or, where they are set up, by token: what has a token's form is taken for one.

    Raises UnauthorizedError, InvalidTokenError, TokenKeysUnavailableError, TenantElsewhereError.
    """
    given = bearer(request)
    is_token = tokens is not None and LOOKS_LIKE.fullmatch(given)
    caller = tokens.caller(given, tenants.get) if tokens and is_token else tenants.authenticate(given)
    tenants.admit(caller.tenant)
    return caller


def permit(request: Request, caller: Caller) -> None:
    """Reading needs one scope, everything else the other. Raises InsufficientScopeError."""
    caller.need(READ if request.method in _READING else WRITE)

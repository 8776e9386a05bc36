"""Who sent a request: the one place where a credential becomes a caller.

Knows flask and the tenants.
"""

from __future__ import annotations

import re

from flask import Request

from shared.errors import UnauthorizedError
from shared.tenancy.caller import READ, WRITE, Caller
from shared.tenancy.directory import Directory

_BEARER = re.compile(r"Bearer +([!-~]+) *", re.IGNORECASE)
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def bearer(request: Request) -> str:
    """The token of the Authorization header. Raises UnauthorizedError."""
    found = _BEARER.fullmatch(request.headers.get("Authorization", ""))
    if found is None:
        raise UnauthorizedError
    return found[1]


def caller(request: Request, tenants: Directory) -> Caller:
    """Who sent it, and may send it: reading needs one scope, everything else the other.

    Raises UnauthorizedError, InsufficientScopeError.
    """
    found = tenants.authenticate(bearer(request))
    found.need(READ if request.method in _READING else WRITE)
    return found

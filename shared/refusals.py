"""What the edge refuses before there is a job: who asks, how often, and who speaks on the broker.

Errors of the tree in `shared.errors`, and like it nothing but the standard library.
"""

from __future__ import annotations

from shared.errors import ForbiddenError, RequestError, TransientError, UnauthorizedError


class InvalidTokenError(UnauthorizedError):
    """A JWT that cannot be believed; the answer never says which of its checks failed."""

    code = "invalid_token"
    title = "The token is not valid"


class InsufficientScopeError(ForbiddenError):
    code = "insufficient_scope"
    title = "The key or token may not do this"


class RateLimitedError(TransientError):
    """Too many requests of one key or one client address."""

    status = 429
    code = "rate_limited"
    title = "Too many requests"


class UntrustedEventError(RequestError):
    """An event whose proof is missing or wrong: whoever sent it is not one of our stages."""

    status = 403
    code = "untrusted_event"
    title = "The event was not made by this installation"

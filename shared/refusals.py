"""What the edge refuses before there is a job: who asks, how often, and who speaks on the broker.

Errors of the tree in `shared.errors`, and like it nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import ForbiddenError, JsonValue, RequestError, TransientError, UnauthorizedError


class InvalidTokenError(UnauthorizedError):
    """A JWT that cannot be believed; the answer never says which of its checks failed.

    `signed`: its signature was right, so whoever sent it did not guess. Never shown.
    """

    code = "invalid_token"
    title = "The token is not valid"

    def __init__(self, *, signed: bool = False) -> None:
        super().__init__()
        self.signed = signed


class TokenKeysUnavailableError(TransientError):
    """No token can be checked, since no key of the issuer has been read yet. Says nothing about the token."""

    code = "token_keys_unavailable"
    title = "Tokens cannot be checked now"
    retry_after = 5


class InsufficientScopeError(ForbiddenError):
    code = "insufficient_scope"
    title = "The key or token may not do this"


class RateLimitedError(TransientError):
    """Too many requests of one key or one client address. `retry_after`: seconds until one more may come.

    `context` holds `policy`, the limit's name in the RateLimit headers.
    """

    status = 429
    code = "rate_limited"
    title = "Too many requests"

    def __init__(self, detail: str, *, retry_after: int, context: Mapping[str, JsonValue]) -> None:
        super().__init__(detail, context=context)
        self.retry_after = retry_after


class UntrustedEventError(RequestError):
    """An event whose proof is missing or wrong: whoever sent it is not one of our stages."""

    status = 403
    code = "untrusted_event"
    title = "The event was not made by this installation"


class IdempotencyConflictError(RequestError):
    """One Idempotency-Key, two different requests."""

    status = 422
    code = "idempotency_key_reused"
    title = "Idempotency key used for another request"


class FetchUnavailableError(TransientError):
    """The server of a picture named by address cannot be reached, or not in time."""

    code = "fetch_unavailable"
    title = "The picture's server is not available"
    retry_after = 5

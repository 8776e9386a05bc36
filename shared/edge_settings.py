"""Settings of the front door: whose tokens it believes, and how often it may be asked.

A part of `shared.settings`, which reads it. Knows the standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from shared.variables import env, guarded_url, rate_store, shared_secret, text, whole


@dataclass(frozen=True)
class JwtSettings:
    """Tokens (JWT). The HTTP API takes them beside API keys once issuer, audience and one source of keys are set
    (docs/edge.md)."""

    issuer: str = env("WAKESWAP_JWT_ISSUER", text, "")
    """What a token's `iss` must be, to the letter. Empty: no tokens are taken."""
    audience: str = env("WAKESWAP_JWT_AUDIENCE", text, "")
    """What a token's `aud` must be, or hold as one of a list."""
    jwks_url: str = env("WAKESWAP_JWT_JWKS_URL", guarded_url, "")
    """https address of the issuer's key set (RS256, ES256, EdDSA), kept for five minutes, and on if it fails. An
    authority of your own is named to Python by SSL_CERT_FILE."""
    keys: str = env("WAKESWAP_JWT_KEYS", text, "")
    """Public keys themselves, instead of an address: a key set (JWKS), or PEM blocks `PUBLIC KEY` one after another."""
    secret: str = env("WAKESWAP_JWT_SECRET", shared_secret, "", secret=True)
    """Shared secret of HS256, instead of public keys: 32 or more visible ASCII characters."""
    tenant_claim: str = env("WAKESWAP_JWT_TENANT_CLAIM", text, "tenant")
    """The claim that holds the tenant's name."""


@dataclass(frozen=True)
class RateSettings:
    """Rate limits. Requests to the HTTP API within any minute; 0: no limit. Health, metrics, /wake and events from the
    broker are never limited (docs/edge.md)."""

    per_key: int = env("WAKESWAP_RATE_PER_KEY", whole(0, 10**6), 1200)
    """Requests a minute with one API key, or of one subject's tokens."""
    per_address: int = env("WAKESWAP_RATE_PER_ADDRESS", whole(0, 10**6), 120)
    """Requests a minute from one client address that come with no valid key or token; an IPv6 client is its /64."""
    notifications: int = env("WAKESWAP_RATE_NOTIFICATIONS", whole(0, 10**6), 12_000)
    """Bucket notifications a minute to /events/s3."""
    failures: int = env("WAKESWAP_AUTH_FAILURES", whole(0, 10**6), 20)
    """Wrong keys or tokens a minute after which their address is blocked, also for right ones. 0: nobody is blocked."""
    block_seconds: int = env("WAKESWAP_AUTH_BLOCK_SECONDS", whole(1, 86_400), 300)
    """How long a blocked address is refused."""
    proxies: int = env("WAKESWAP_TRUSTED_PROXIES", whole(0, 20), 0)
    """Proxies in front, each of which adds its client to X-Forwarded-For: the client is the entry so many from the
    right. 0: that header is not believed. Fewer than there are: all clients count as the outermost proxy left out.
    More than there are: a client can name any address."""
    store: str = env("WAKESWAP_RATE_STORE", rate_store, "memory", secret=True)
    """`memory`: each process counts alone; or `redis://[:password@]host[:port][/database]`, all count together. While
    redis does not answer, requests pass."""

    @property
    def store_password(self) -> str:
        """The redis password, for the log's redaction; empty: there is none."""
        return urlsplit(self.store).password or ""

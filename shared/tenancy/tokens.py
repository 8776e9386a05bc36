"""JWT (RFC 7519) of one issuer as callers: checked as RFC 8725 asks, and any failure looks the same from outside.

Imports PyJWT when a token has come. Knows tenants, key sets and the edge's errors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from logging import getLogger
from typing import TYPE_CHECKING, cast

from shared.errors import ConfigError, JsonValue
from shared.refusals import InvalidTokenError
from shared.rejections import UnknownTenantError
from shared.tenancy import key_sets
from shared.tenancy.caller import SCOPES, Caller
from shared.tenancy.key_sets import Key
from shared.tenancy.key_sources import FixedKeys, KeySource, RemoteKeys
from shared.tenancy.tenant import NAME, Tenant

if TYPE_CHECKING:
    from shared.edge_settings import JwtSettings

log = getLogger(__name__)

LOOKS_LIKE = re.compile(r"[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]*\.[A-Za-z0-9_=-]*")
"""Three parts in base64url: what else stands after `Bearer` is an API key."""
LEEWAY_SECONDS = 60
"""How far the issuer's clock may be from ours, for expiry, not-before and issued-at."""

Claims = Mapping[str, JsonValue]


@dataclass(frozen=True)
class Tokens:
    issuer: str
    audience: str
    tenant_claim: str
    keys: KeySource

    def caller(self, token: str, tenant: Callable[[str], Tenant]) -> Caller:
        """Who sent this token. `tenant` finds one by name and raises UnknownTenantError.

        The claim `scope` (RFC 8693: names with spaces between) says for what the token is good, names that are not
        ours count for nothing; without that claim it is good for everything that an API key is.
        Raises InvalidTokenError, always with the same text, and TokenKeysUnavailableError.
        """
        claims = self._verified(token)
        name, scope, subject = claims.get(self.tenant_claim), claims.get("scope", " ".join(SCOPES)), claims.get("sub")
        if not isinstance(name, str) or not NAME.fullmatch(name) or not isinstance(scope, str):
            raise _refused("the claim of the tenant or of the scopes", signed=True)
        try:
            owner = tenant(name)
        except UnknownTenantError:
            raise _refused("a tenant that does not exist", signed=True) from None
        return Caller(owner, frozenset(scope.split()) & frozenset(SCOPES), _key_id(name, str(subject or "")))

    def _verified(self, token: str) -> Claims:
        """The claims of a token that one of the keys signed; the key's algorithm is the only one that it may name."""
        import jwt

        try:
            key_id = jwt.get_unverified_header(token).get("kid", "")
        except jwt.PyJWTError as error:
            raise _refused(type(error).__name__) from None
        for key in self.keys.find(str(key_id)):
            try:
                return self._decode(token, key)
            except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError):
                continue
            except jwt.PyJWTError as error:
                raise _refused(type(error).__name__, signed=_claims_only(error)) from None
        raise _refused("no key that signed it")

    def _decode(self, token: str, key: Key) -> Claims:
        import jwt

        decoded = jwt.decode(
            token,
            key.material,
            algorithms=[key.algorithm],
            audience=self.audience,
            issuer=self.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "aud", "iss"]},
        )
        return cast(Claims, decoded)


def open_tokens(settings: JwtSettings) -> Tokens | None:
    """What the settings turn on; None: no tokens are taken. Raises ConfigError for half of a set-up."""
    sources = [bool(settings.jwks_url), bool(settings.keys), bool(settings.secret)]
    if not (settings.issuer or settings.audience or any(sources)):
        return None
    if not (settings.issuer and settings.audience and sum(sources) == 1):
        raise ConfigError(
            "Tokens need an issuer, an audience, and either an address, keys or a secret.", context={"field": "jwt"}
        )
    if settings.keys and not key_sets.plausible(settings.keys):
        raise ConfigError("Neither a key set nor PEM blocks of public keys.", context={"field": "jwt.keys"})
    return Tokens(settings.issuer, settings.audience, settings.tenant_claim, _source(settings))


def _source(settings: JwtSettings) -> KeySource:
    if settings.jwks_url:
        return RemoteKeys(lambda: _download(settings.jwks_url))
    if settings.secret:
        return FixedKeys(lambda: [Key("", "HS256", settings.secret.encode())])
    return FixedKeys(lambda: key_sets.read(settings.keys))


def _download(url: str) -> bytes:
    from shared.tenancy import issuer  # urllib and ssl: what a process that sees no token need not import

    return issuer.download(url)


def _claims_only(error: Exception) -> bool:
    """Whether the signature was right and only what the token says is not: PyJWT looks at the signature first."""
    import jwt

    return not isinstance(error, jwt.DecodeError)


def _refused(why: str, *, signed: bool = False) -> InvalidTokenError:
    log.info("token refused: %s", why)
    return InvalidTokenError(signed=signed)


def _key_id(tenant: str, subject: str) -> str:
    """Names the subject without saying who it is."""
    return "jwt:" + hashlib.sha256(f"{tenant}\0{subject}".encode("utf-8", "surrogatepass")).hexdigest()[:16]

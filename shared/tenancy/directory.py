"""The tenants this process serves, found by name or by API key.

Knows the error tree and plain text; the settings hand over the text, this module checks it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import replace

from shared import records
from shared.errors import ConfigError, JsonValue, UnauthorizedError
from shared.rejections import UnknownTenantError
from shared.tenancy.caller import Caller
from shared.tenancy.policy import policy, webhook
from shared.tenancy.tenant import NAME, Tenant

KEY = re.compile(r"[!-~]{16,}")
"""What can stand after `Bearer`. A shorter key can be guessed, and could be part of any word that a log redacts."""


class Directory:
    """All tenants, immutable after start."""

    def __init__(self, tenants: Mapping[str, Tenant]) -> None:
        self._tenants = dict(tenants)

    def get(self, name: str) -> Tenant:
        """Raises UnknownTenantError."""
        try:
            return self._tenants[name]
        except KeyError:
            raise UnknownTenantError from None

    def authenticate(self, key: str) -> Caller:
        """Who calls with this API key.

        Digests are compared, each in constant time and all of them, so that neither the length nor the place of
        a match shows in the time taken. Raises UnauthorizedError without saying why.
        """
        digest = _digest(key)
        found = [tenant for tenant in self._tenants.values() if hmac.compare_digest(tenant.key_digest, digest)]
        if len(found) != 1:
            raise UnauthorizedError
        return Caller(found[0], key_id=f"env:{found[0].name}")


def load(tenants: str, api_keys: str = "", webhook_secrets: str = "") -> Directory:
    """The directory from its three settings.

    `tenants`: JSON `{"demo": {"policy": {...}, "webhook": {"url": "..."}}}`; `api_keys` and `webhook_secrets`:
    `name=value[,name=value]`. Raises ConfigError whose context names the field.
    """
    found = {name: _tenant(name, entry) for name, entry in _object("tenants", _json(tenants)).items()}
    for name, key in pairs("api_keys", api_keys).items():
        if not KEY.fullmatch(key):
            where = f"api_keys.{name}"
            raise ConfigError("A key has at least 16 visible ASCII characters.", context={"field": where})
        found[name] = replace(_known(found, "api_keys", name), key_digest=_digest(key))
    for name, secret in pairs("webhook_secrets", webhook_secrets).items():
        tenant = _known(found, "webhook_secrets", name)
        found[name] = replace(tenant, webhook=replace(tenant.webhook, secret=secret))
    _check(found)
    return Directory(found)


def pairs(field: str, text: str) -> dict[str, str]:
    """`a=x,b=y` as a mapping. Raises ConfigError; the values, which are secrets, are never in its text."""
    found: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if not (name and equals and value):
            raise ConfigError("Each entry must read name=value.", context={"field": field})
        if name in found:
            raise ConfigError("A name stands twice.", context={"field": f"{field}.{name}"})
        found[name] = value
    return found


def _tenant(name: str, entry: JsonValue) -> Tenant:
    where = f"tenants.{name}"
    if not NAME.fullmatch(name):
        raise ConfigError("A tenant name is a DNS label of at most 40 characters.", context={"field": where})
    table = _object(where, entry)
    if unknown := sorted(set(table) - {"policy", "webhook"}):
        raise ConfigError("Unknown field.", context={"field": f"{where}.{unknown[0]}"})
    return Tenant(
        name,
        policy(f"{where}.policy", _object(f"{where}.policy", table.get("policy", {}))),
        webhook(f"{where}.webhook", _object(f"{where}.webhook", table.get("webhook", {}))),
    )


def _json(text: str) -> JsonValue:
    try:
        return records.loads(text or "{}")
    except ValueError:
        raise ConfigError("Not valid JSON.", context={"field": "tenants"}) from None


def _object(field: str, value: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise ConfigError("Must be a JSON object.", context={"field": field})
    return value


def _known(found: Mapping[str, Tenant], field: str, name: str) -> Tenant:
    if name not in found:
        raise ConfigError("Names a tenant that does not exist.", context={"field": f"{field}.{name}"})
    return found[name]


def _check(found: Mapping[str, Tenant]) -> None:
    digests = [tenant.key_digest for tenant in found.values() if tenant.key_digest]
    if len(digests) != len(set(digests)):
        raise ConfigError("Two tenants have the same key.", context={"field": "api_keys"})
    for tenant in found.values():
        if tenant.webhook.secret and not _signing(tenant.webhook.secret):
            where = f"webhook_secrets.{tenant.name}"
            raise ConfigError("Must be whsec_ and 24 to 64 bytes in base64.", context={"field": where})


def _signing(secret: str) -> bool:
    """Whether this can sign: Standard Webhooks asks for 24 to 64 random bytes."""
    try:
        return secret.startswith("whsec_") and 24 <= len(base64.b64decode(secret[6:], validate=True)) <= 64
    except ValueError:
        return False


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

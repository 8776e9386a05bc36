"""The tenants this process serves, found by name or by API key: some of its settings, some of a folder that changes.

Knows the error tree and plain text; the settings hand over the text, this package checks it.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from shared import records
from shared.errors import ConfigError, JsonValue, TenantNotReadyError, UnauthorizedError
from shared.rejections import TenantElsewhereError, UnknownTenantError
from shared.tenancy import policy
from shared.tenancy.api_keys import NOBODY, ApiKey, keep, look_up, opens
from shared.tenancy.caller import Caller
from shared.tenancy.folder import Contents, Meter, TenantFolder
from shared.tenancy.tenant import NAME, Tenant

KEY = re.compile(r"[!-~]{16,}")
"""What can stand after `Bearer`. A shorter key can be guessed, and could be part of any word that a log redacts."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Known:
    """All tenants at one moment. Whoever holds it, or a tenant out of it, is not disturbed by a change."""

    contents: Contents
    tenants: Mapping[str, Tenant]
    keys: Mapping[str, tuple[Tenant, ApiKey]]
    """By what they are looked up under; a key that two tenants have is left out, so that it opens neither."""


class Directory:
    def __init__(
        self,
        tenants: Mapping[str, Tenant],
        folder: TenantFolder | None = None,
        *,
        only: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`only`: the one tenant whose installation this is; empty: the shared one."""
        self._fixed = dict(tenants)
        self._folder = folder
        self._only = only
        self._clock = clock
        self._known = _know(self._fixed, folder.contents() if folder else Contents())

    def get(self, name: str) -> Tenant:
        """The tenant as it is now. Raises UnknownTenantError; TenantNotReadyError while its file cannot be used."""
        known = self._current()
        if name in known.tenants:
            return known.tenants[name]
        if name in known.contents.unread:
            raise TenantNotReadyError
        raise UnknownTenantError

    def admit(self, tenant: Tenant) -> None:
        """Raises TenantElsewhereError where the tenant's jobs are not this process's: in the shared installation those
        of a tenant whose policy says `dedicated`, in a dedicated one those of all others."""
        elsewhere = tenant.name != self._only if self._only else tenant.policy.isolation == "dedicated"
        if elsewhere:
            raise TenantElsewhereError

    def accepted(self, name: str) -> Tenant:
        """The tenant of work that another process has taken in; `admit` says whether it is taken here too.

        The files of a mounted ConfigMap change on every node in its own time, so a tenant that is not here yet may
        be known there: TenantNotReadyError then, and UnknownTenantError only where nothing can change. Of another
        tenant than the one that a dedicated installation has: TenantElsewhereError, whatever may be known of it later.
        """
        try:
            return self.get(name)
        except UnknownTenantError:
            if self._only and name != self._only:
                raise TenantElsewhereError from None
            if self._folder is None:
                raise
            raise TenantNotReadyError from None

    def authenticate(self, key: str) -> Caller:
        """Who calls with this API key. Raises UnauthorizedError without saying why.

        A key that nobody has, a wrong one and one that has expired cost the same: two digests and one comparison,
        and what is found in the table is told by a digest or by characters that are no secret.
        """
        tenant, kept = self._current().keys.get(look_up(key), (None, NOBODY))
        opened = opens(kept, key, self._clock())
        if not opened or tenant is None:
            raise UnauthorizedError
        return Caller(tenant, frozenset(kept.scopes), kept.shown or f"env:{tenant.name}")

    def everybody(self) -> tuple[Tenant, ...]:
        """All tenants as they are now."""
        return tuple(self._current().tenants.values())

    def _current(self) -> _Known:
        if self._folder is None:
            return self._known
        contents, known = self._folder.contents(), self._known
        if known.contents is not contents:  # two threads may do this at a time, and come to the same
            known = self._known = _know(self._fixed, contents)
        return known


def load(
    tenants: str,
    api_keys: str = "",
    webhook_secrets: str = "",
    folder: str = "",
    meter: Meter | None = None,
    *,
    only: str = "",
) -> Directory:
    """The directory from its five settings.

    `tenants`: JSON `{"demo": {"policy": {...}, "webhook": {"url": "..."}}}`; `api_keys` and `webhook_secrets`:
    `name=value[,name=value]`; `folder`: of more tenants, empty for none, whose secrets stand in the setting too;
    `only`: as Directory takes it. Raises ConfigError whose context names the field.
    """
    entries = _object("tenants", _json(tenants)).items()
    found = {name: _tenant(name, entry) for name, entry in entries}
    secrets = _secrets(webhook_secrets)
    for name, key in pairs("api_keys", api_keys).items():
        found[name] = replace(_named(found, "api_keys", name), keys=(_made_up(f"api_keys.{name}", key),))
    for name in secrets:
        if name in found or not folder:
            tenant = _named(found, "webhook_secrets", name)
            found[name] = replace(tenant, webhook=replace(tenant.webhook, secret=secrets[name]))
    if only and not NAME.fullmatch(only):
        raise ConfigError("Must be a tenant's name.", context={"field": "only"})
    if _shared(found):
        raise ConfigError("Two tenants have the same key.", context={"field": "api_keys"})
    files = TenantFolder(Path(folder), taken=frozenset(found), secrets=secrets, meter=meter) if folder else None
    return Directory(found, files, only=only)


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


def _know(fixed: Mapping[str, Tenant], contents: Contents) -> _Known:
    tenants = {**contents.tenants, **fixed}
    twice = _shared(tenants)
    if twice:
        names = sorted(name for name, tenant in tenants.items() if twice & {key.look_up for key in tenant.keys})
        log.error("an API key opens nothing, since several tenants have it: %s", ", ".join(names))
    keys = {key.look_up: (tenant, key) for tenant in tenants.values() for key in tenant.keys}
    return _Known(contents, tenants, {place: held for place, held in keys.items() if place not in twice})


def _shared(tenants: Mapping[str, Tenant]) -> set[str]:
    """What two tenants' keys are both looked up under."""
    counted = Counter(key.look_up for tenant in tenants.values() for key in tenant.keys)
    return {place for place, count in counted.items() if count > 1}


def _tenant(name: str, entry: JsonValue) -> Tenant:
    return policy.tenant(f"tenants.{name}", name, entry, 0.0, parts=("policy", "webhook"))


def _made_up(field: str, key: str) -> ApiKey:
    if not KEY.fullmatch(key):
        raise ConfigError("A key has at least 16 visible ASCII characters.", context={"field": field})
    return keep(key)


def _secrets(text: str) -> dict[str, str]:
    found = pairs("webhook_secrets", text)
    for name, secret in found.items():
        if not policy.is_signing_secret(secret):
            where = f"webhook_secrets.{name}"
            raise ConfigError("Must be whsec_ and 24 to 64 bytes in base64.", context={"field": where})
    return found


def _json(text: str) -> JsonValue:
    try:
        return records.loads(text or "{}")
    except ValueError:
        raise ConfigError("Not valid JSON.", context={"field": "tenants"}) from None


def _object(field: str, value: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise ConfigError("Must be a JSON object.", context={"field": field})
    return value


def _named(found: Mapping[str, Tenant], field: str, name: str) -> Tenant:
    if name not in found:
        raise ConfigError("Names a tenant that does not exist.", context={"field": f"{field}.{name}"})
    return found[name]

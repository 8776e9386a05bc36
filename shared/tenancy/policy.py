"""A tenant's plain data, checked: every field named, typed and in range, or it is not taken.

What a field may hold stands at the field itself (see `fields`). Knows the error tree and the tenant.
"""

from __future__ import annotations

import base64

from shared.errors import JsonValue
from shared.tenancy import fields
from shared.tenancy.api_keys import MAX_KEPT, MAX_LIVE, ApiKey
from shared.tenancy.tenant import NAME, Dedicated, Policy, Tenant, Webhook

PARTS = ("name", "policy", "webhook", "keys", "dedicated")
"""Of a tenant's file; each may be left out."""


def tenant(where: str, name: str, value: JsonValue, now: float, *, parts: tuple[str, ...] = PARTS) -> Tenant:
    """A tenant from its object.

    `where` stands before every field's name in an error, unless it is empty; `now`: seconds since the epoch, by
    which at most two keys are live. Raises ConfigError whose context names the field.
    """
    table, before = fields.table_of(where or "file", value), f"{where}." if where else ""
    if not NAME.fullmatch(name):
        fields.refuse(where or "name", "A tenant name is a DNS label of at most 40 characters.")
    fields.no_more(where, table, dict.fromkeys(parts))
    if table.get("name", name) != name:
        fields.refuse(f"{before}name", f"Must be {name}, as the file is called.")
    return Tenant(
        name,
        fields.read(Policy, f"{before}policy", table.get("policy", {})),
        webhook(f"{before}webhook", table.get("webhook", {})),
        _keys(f"{before}keys", table.get("keys", []), now),
        fields.read(Dedicated, f"{before}dedicated", table.get("dedicated", {})),
    )


def webhook(where: str, value: JsonValue) -> Webhook:
    """A webhook without its secret, which is a setting of its own. Raises ConfigError."""
    found = fields.read(Webhook, where, value)
    if found.url.startswith("http:") and not found.allow_local:
        fields.refuse(f"{where}.url", "Must be an https address.")
    return found


def is_signing_secret(secret: str) -> bool:
    """Whether this can sign: Standard Webhooks asks for `whsec_` and 24 to 64 random bytes in base64."""
    try:
        return secret.startswith("whsec_") and 24 <= len(base64.b64decode(secret[6:], validate=True)) <= 64
    except ValueError:
        return False


def _keys(where: str, value: JsonValue, now: float) -> tuple[ApiKey, ...]:
    if not isinstance(value, list) or len(value) > MAX_KEPT:
        fields.refuse(where, f"Must be a list of at most {MAX_KEPT} keys.")
    found = tuple(fields.read(ApiKey, f"{where}[{index}]", entry) for index, entry in enumerate(value))
    for index, key in enumerate(found):
        if key.look_up in {other.look_up for other in found[:index]}:
            fields.refuse(f"{where}[{index}].look_up", "Stands twice.")
    if sum(key.is_live(now) for key in found) > MAX_LIVE:
        fields.refuse(where, f"At most {MAX_LIVE} keys may be live at a time.")
    return found

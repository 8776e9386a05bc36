"""What the command line shows of tenants: plain facts, then as JSON or as lines of name and value. Never a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from shared import records
from shared.errors import ConfigError, JsonValue
from shared.tenancy import folder
from shared.tenancy.api_keys import ApiKey
from shared.tenancy.tenant import Policy, Tenant

Facts = dict[str, JsonValue]


def key_facts(key: ApiKey, now: float) -> Facts:
    """Without salt and digest."""
    return {
        "look_up": key.look_up,
        "state": "live" if key.is_live(now) else "expired",
        "created": key.created,
        "expires": key.expires or "never",
        "scopes": ",".join(key.scopes),
        "label": key.label,
    }


def tenant_facts(tenant: Tenant, now: float) -> Facts:
    """What holds for a tenant, defaults included."""
    policy = records.write(tenant.policy)
    webhook: Facts = {"url": tenant.webhook.url, "allow_local": tenant.webhook.allow_local}
    keys: list[JsonValue] = [key_facts(key, now) for key in tenant.keys]
    facts: Facts = {"name": tenant.name, "policy": policy, "webhook": webhook, "keys": keys}
    if tenant.policy.isolation == "dedicated":
        facts["dedicated"] = records.write(tenant.dedicated)
    return facts


def print_tenant(facts: Facts) -> None:
    defaults = records.write(Policy())
    assert isinstance(defaults, dict)
    print(f"name\t{facts['name']}")
    for part in ("policy", "webhook", "dedicated"):
        table = facts.get(part, {})
        assert isinstance(table, dict)
        for name, value in table.items():
            default = part == "policy" and defaults[name] == value
            print(f"{part}.{name}\t{json.dumps(value)}{'' if not default else ' (default)'}")
    keys = facts["keys"]
    assert isinstance(keys, list)
    for key in keys:
        assert isinstance(key, dict)
        print("key\t" + "\t".join(str(value) for value in key.values()))


def print_keys(rows: Sequence[Facts]) -> None:
    print("\t".join(("look_up", "state", "created", "expires", "scopes", "label")))
    for row in rows:
        print("\t".join(str(value) for value in row.values()))


def faults(root: Path, now: float) -> tuple[int, dict[str, str]]:
    """How many files there are, and what is wrong with which. Raises ConfigError when there is no such folder."""
    try:
        names = sorted(
            path.name
            for path in root.iterdir()
            if path.suffix in (folder.SUFFIX, ".yml") and not path.name.startswith(".")
        )
    except OSError as error:
        raise ConfigError(f"{str(root)!r} cannot be read: {error.strerror}.", context={"field": "folder"}) from error
    found: dict[str, str] = {}
    tenants: dict[str, Tenant] = {}
    for name in names:
        try:
            tenants[name] = folder.read(root / name, now)
        except ConfigError as error:
            found[name] = f"{error.context['field']}: {error.detail}"
    return len(names), {**found, **dict(_shared_keys(tenants))}


def _shared_keys(tenants: Mapping[str, Tenant]) -> Iterator[tuple[str, str]]:
    owners: dict[str, str] = {}
    for name, tenant in tenants.items():
        for index, key in enumerate(tenant.keys):
            other = owners.setdefault(key.look_up, name)
            if other != name:
                yield name, f"keys[{index}].look_up: {other} has it too, and it opens neither."

"""The Secrets of a tenant's namespace: named by a plan, without a value in it.

Which there are follows from what the other objects refer to. Some values are made when a Secret is first applied, by
a template that is its annotation; the others are brought by the operator. Nothing is copied from an overlay: keys that
two tenants had would let one sign the other's events. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from infra.tenants.objects import GENERATE, Object, at, text, walk
from infra.tenants.spec import Place
from shared.errors import ConfigError

STORE = "wakeswap-store"


def secrets(objects: Sequence[Object], place: Place) -> list[Object]:
    """One for each name that the objects refer to, in the order of names."""
    wanted: dict[str, set[str]] = {}
    for name, key in _references(objects):
        wanted.setdefault(name, set()).update({key} - {""})
    return [_secret(name, keys, place) for name, keys in sorted(wanted.items())]


def templates(secret: Object) -> dict[str, str]:
    """What is made for a Secret, by the key of its value; empty for one whose values are brought."""
    found = text(at(secret, "metadata", "annotations").get(GENERATE))
    return {name: str(value) for name, value in json.loads(found or "{}").items()}


def _secret(name: str, keys: set[str], place: Place) -> Object:
    known = {key: template for key, template in _known(place).items() if key in keys}
    if known and keys - set(known):
        missing = ", ".join(sorted(keys - set(known)))
        raise ConfigError(f"Secret {name}: it is not known how {missing} is made.", context={"field": "--overlay"})
    metadata: Object = {"name": name, "namespace": place.namespace}
    if known:
        metadata["annotations"] = {GENERATE: json.dumps(known, sort_keys=True)}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


def _known(place: Place) -> dict[str, str]:
    return {
        "WAKESWAP_API_KEYS": "",  # a tenant's keys stand in its file
        "WAKESWAP_AUDIT_KEY": "{random}",
        "WAKESWAP_EVENT_KEYS": "k1={random}",
        "WAKESWAP_NOTIFICATION_TOKEN": "{random}",
        "WAKESWAP_WEBHOOK_SECRETS": f"{place.name}=whsec_{{random}}",  # 64 hex digits are base64 too, of 48 bytes
    }


def _references(objects: Sequence[Object]) -> Iterator[tuple[str, str]]:
    """(name, key) of every reference; an empty key is the whole Secret."""
    for item in objects:
        for part in walk(item):
            value = at(part, "secretKeyRef")
            if value:
                yield text(value.get("name")), text(value.get("key"))
            for path in (("secretRef",), ("auth", "secret", "ref")):
                if name := text(at(part, *path).get("name")):
                    yield name, ""
            if name := text(at(part, "secret").get("secretName")):
                yield name, ""

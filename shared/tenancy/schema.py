"""JSON Schema of a tenant's file, made from the same declarations that `policy` reads by. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields

from shared.errors import JsonValue
from shared.tenancy.api_keys import MAX_KEPT, ApiKey
from shared.tenancy.fields import Schema, is_required, kinds
from shared.tenancy.tenant import NAME, Dedicated, Policy, Webhook

RECORDS: Mapping[str, type] = {"policy": Policy, "webhook": Webhook, "keys": ApiKey, "dedicated": Dedicated}
"""What the parts of a file hold, besides its name."""


def tenant_file(docs: Mapping[str, Mapping[str, str]]) -> Schema:
    """The schema. `docs`: by class name, what stands below each field; "" is the class's own."""
    parts: Schema = {name: _record(kind, docs[kind.__name__]) for name, kind in RECORDS.items()}
    keys: Schema = {"type": "array", "maxItems": MAX_KEPT, "items": parts["keys"]}
    name: Schema = {"type": "string", "pattern": f"^(?:{NAME.pattern})$", "description": "As the file is called."}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A tenant of Wakeswap",
        "type": "object",
        "additionalProperties": False,
        "properties": {"name": name, **parts, "keys": keys},
    }


def text(docs: Mapping[str, Mapping[str, str]]) -> str:
    return json.dumps(tenant_file(docs), indent=2) + "\n"


def _record(kind: type, docs: Mapping[str, str]) -> Schema:
    known, items = kinds(kind), {item.name: item for item in fields(kind)}
    properties: Schema = {}
    for name, one in known.items():
        shown: Schema = {"description": docs[name]} if name in docs else {}
        if not is_required(items[name]):
            shown["default"] = _plain(items[name].default)
        properties[name] = {**one.schema(), **shown}
    required: list[JsonValue] = [name for name in known if is_required(items[name])]
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "description": docs[""], **({"required": required} if required else {})}


def _plain(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [str(entry) for entry in value]
    assert isinstance(value, str | int | float)
    return value

"""Seeds: a fault merged into a stack that has none. See tests/data/knative/README.md for the form."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parents[1] / "data/knative"
Doc = dict[str, Any]


@dataclass(frozen=True)
class Seed:
    rule: str
    where: str
    """Where its rule must see the fault."""
    documents: list[Doc]

    @classmethod
    def read(cls, file: Path) -> Seed:
        text = file.read_text()
        what, where = text.splitlines()[:2]
        assert what.startswith("# "), f"{file.name}: the first line says what is wrong"
        assert where.startswith("# at "), f"{file.name}: the second line says where"
        return cls(rule_of(file), where.removeprefix("# at "), merged(good(), list(yaml.safe_load_all(text))))


def seeds() -> list[Path]:
    return sorted((DATA / "seeds").glob("*.yaml"))


def rule_of(file: Path) -> str:
    """`<rule>.yaml`, or `<rule>.<variant>.yaml` where a rule sees more than one kind of fault."""
    return file.name.split(".")[0]


@cache
def _good() -> str:
    return (DATA / "good.yaml").read_text()


def good() -> list[Doc]:
    return list(yaml.safe_load_all(_good()))


def merged(documents: list[Doc], changes: list[Doc]) -> list[Doc]:
    """The documents with each change merged into the one of its kind and name, or added."""
    for change in changes:
        key = (change["kind"], change["metadata"]["name"])
        found = [doc for doc in documents if (doc["kind"], doc["metadata"]["name"]) == key]
        source = change.pop("$copy", None)
        if source:
            pair = (source["kind"], source["name"])
            original = next(doc for doc in documents if (doc["kind"], doc["metadata"]["name"]) == pair)
            documents.append(_merge(copy.deepcopy(original), change))
        elif not found:
            documents.append(change)
        elif change.get("$patch") == "delete":
            documents.remove(found[0])
        else:
            documents[documents.index(found[0])] = _merge(found[0], change)
    return documents


def _merge(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        both = {key: _merge(old.get(key), value) for key, value in new.items()}
        return {key: value for key, value in {**old, **both}.items() if value is not None}
    if _named(old) and _named(new):
        return _merge_named(old, new)
    return [item for item in new if item != {"$patch": "replace"}] if isinstance(new, list) else new


def _named(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value)


def _merge_named(old: list[Doc], new: list[Doc]) -> list[Doc]:
    result = {item["name"]: item for item in old}
    for item in new:
        name = item["name"]
        if item.get("$patch") == "delete":
            del result[name]
        elif "$rename" in item:
            result[name] = {**result[name], "name": item["$rename"]}
        else:
            result[name] = _merge(result.get(name, {}), item)
    return list(result.values())

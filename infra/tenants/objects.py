"""Kubernetes objects as plain JSON values: how one is named, told apart and compared. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shared.errors import JsonValue

Object: TypeAlias = dict[str, JsonValue]

TENANT = "wakeswap.dev/tenant"
"""Label: whose it is."""
MANAGED = "app.kubernetes.io/managed-by"
MANAGER = "wakeswap-tenants"
"""Value of the label MANAGED."""
OWNER = "wakeswap.dev/owner"
"""Annotation: `<namespace of the installation>/<tenant>`. Two installations on one cluster keep apart by it."""
KINDS = "wakeswap.dev/kinds"
"""Annotation of a tenant's Namespace: every kind that was put into it, so that what is left over can be found."""
ONCE = "wakeswap.dev/once"
"""Label, `true`: one for the whole cluster or all of its dashboards. It is the shared installation's, no tenant's."""
GENERATE = "wakeswap.dev/generate"
"""Annotation of a Secret: a template for each value that is made where there is none; `{random}` is 64 hex digits."""


@dataclass(frozen=True, order=True)
class Key:
    """What tells objects apart. `api` is no part of it: one object can be read in several versions of its group."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


def table(value: JsonValue) -> Object:
    """`value` as an object; anything else, and nothing, as an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: JsonValue) -> list[Object]:
    """The objects of a list; anything else as none."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def at(value: JsonValue, *path: str) -> Object:
    """What lies at a path of names, as `table` sees it."""
    for name in path:
        value = table(value).get(name)
    return table(value)


def inside(parent: Object, *path: str) -> Object:
    """The object at a path, made where it is missing, to be changed in place."""
    for name in path:
        inner = parent.setdefault(name, {})
        if not isinstance(inner, dict):
            inner = parent[name] = {}
        parent = inner
    return parent


def text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def api_of(item: Object) -> str:
    return text(item.get("apiVersion"))


def kind_of(item: Object) -> str:
    return text(item.get("kind"))


def name_of(item: Object) -> str:
    return text(at(item, "metadata").get("name"))


def group_of(api: str) -> str:
    """`eventing.knative.dev` of `eventing.knative.dev/v1`; empty for `v1`."""
    return api.rpartition("/")[0]


def key_of(item: Object) -> Key:
    namespace = text(at(item, "metadata").get("namespace"))
    return Key(group_of(api_of(item)), kind_of(item), namespace, name_of(item))


def is_owned(item: Object, owner: str) -> bool:
    """Whether label and annotation say that it was made here for this owner, and no controller made it from another."""
    metadata = at(item, "metadata")
    labels, annotations = at(metadata, "labels"), at(metadata, "annotations")
    marked = labels.get(MANAGED) == MANAGER and labels.get(TENANT) == owner.rpartition("/")[2]
    return marked and annotations.get(OWNER) == owner and not metadata.get("ownerReferences")


def declared(item: Object | None) -> Object:
    """Without what a server writes into it, so that two states can be compared."""
    if item is None:
        return {}
    server_side = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")
    metadata = {name: value for name, value in at(item, "metadata").items() if name not in server_side}
    return {**{name: value for name, value in item.items() if name != "status"}, "metadata": metadata}


def walk(value: JsonValue) -> Iterator[Object]:
    """Every object inside, outermost first."""
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def services(objects: Sequence[Object]) -> list[Object]:
    """Knative's, in the order of the plan."""
    return [item for item in objects if kind_of(item) == "Service" and api_of(item).startswith("serving.knative.dev/")]


def containers(service: Object) -> list[Object]:
    return rows(at(service, "spec", "template", "spec").get("containers"))

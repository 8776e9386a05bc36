"""From a plan to a cluster, and back: applied by server-side apply, pruned and deleted by label and annotation.

Doing it twice changes nothing, and what was cut off is finished by doing it again. A Namespace says first which kinds
will lie in it and last which do, so that nothing is left over unseen. Knows `Cluster`, no client.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from infra.tenants import secret_values
from infra.tenants.cluster_protocol import Cluster
from infra.tenants.errors import ClusterError
from infra.tenants.objects import (
    KINDS,
    MANAGED,
    MANAGER,
    OWNER,
    TENANT,
    Key,
    Object,
    api_of,
    at,
    declared,
    inside,
    is_owned,
    key_of,
    kind_of,
    text,
)
from infra.tenants.spec import DIRECTORY, Place, TenantSpec

What: TypeAlias = Literal["created", "changed", "unchanged", "deleted", "unchecked"]
"""`unchecked`: would be created, which a server cannot try before the Namespace is there."""
DATA = "PersistentVolumeClaim"
"""The kind that holds what cannot be made anew; only a Namespace's end takes it along."""


@dataclass(frozen=True)
class Change:
    what: What
    key: Key
    before: Object
    after: Object
    """Both as people declare them; empty: not there."""


@dataclass(frozen=True)
class How:
    dry_run: bool = False
    """The server checks and answers, and changes nothing."""
    force: bool = False
    """Take over what others have set."""
    brought: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Values of Secrets; see `secret_values`."""


def apply(cluster: Cluster, spec: TenantSpec, objects: Sequence[Object], how: How) -> Iterator[Change]:
    """Make the cluster be as planned; each change is told as it is made. Raises ClusterError."""
    _same_isolation(cluster, spec)
    if not spec.is_dedicated:
        for item in objects:
            yield _apply(cluster, item, cluster.get("v1", key_of(item)), spec.place, how)
        return
    namespace, *others = objects
    live = cluster.get("v1", key_of(namespace))
    _check_owner(live, spec.place, key_of(namespace), how)
    if live is None and how.dry_run:
        yield Change("created", key_of(namespace), {}, declared(namespace))
        yield from (Change("unchecked", key_of(item), {}, declared(item)) for item in others)
        return
    yield from _apply_namespace(cluster, spec.place, live, objects, how)


def delete(cluster: Cluster, place: Place, *, data: bool, dry_run: bool) -> Iterator[Change]:
    """Take the tenant off the cluster: its key of the directory, or all that lies in its namespace but volumes.

    `data`: the namespace too, with its volumes and whatever else lies in it. Raises ClusterError when the tenant is
    not there.
    """
    entry = _entry(cluster, place)
    live = cluster.get("v1", _namespace(place))
    own = live is not None and is_owned(live, place.owner)
    if entry is None and not own:
        raise ClusterError(f"The cluster has no tenant {place.name}.")
    if entry is not None:
        after = cluster.merge("v1", key_of(entry), {"data": {place.entry: None}}, place.manager, dry_run=dry_run)
        yield Change("changed", key_of(entry), declared(entry), declared(after))
    if live is not None and own:
        yield from _empty(cluster, place, live, data, dry_run)


def _apply_namespace(
    cluster: Cluster, place: Place, live: Object | None, objects: Sequence[Object], how: How
) -> Iterator[Change]:
    namespace, *others = objects
    kinds, before = _kinds(namespace), _kinds(live)
    first = _with_kinds(namespace, before | kinds)
    change = _apply(cluster, first, live, place, how)
    if not before - kinds:
        yield change
    for item in others:
        yield _apply_one(cluster, item, place, how)
    wanted = {key_of(item) for item in objects}
    yield from _prune(cluster, place, before | kinds, wanted, how.dry_run)
    if before - kinds:
        last = _apply(cluster, namespace, live, place, how)
        yield Change(last.what, last.key, declared(live), last.after)


def _apply_one(cluster: Cluster, item: Object, place: Place, how: How) -> Change:
    live = cluster.get(api_of(item), key_of(item))
    _check_owner(live, place, key_of(item), how)
    if kind_of(item) == "Secret":
        item = secret_values.filled(cluster, item, live, how.brought, place.manager, dry_run=how.dry_run)
        how = replace(how, force=True)  # what others have set in it is in it already, but for what is brought
    return _apply(cluster, item, live, place, how)


def _apply(cluster: Cluster, item: Object, live: Object | None, place: Place, how: How) -> Change:
    after = declared(cluster.apply(item, place.manager, dry_run=how.dry_run, force=how.force))
    before = declared(live)
    what: What = "created" if live is None else "unchanged" if before == after else "changed"
    return Change(what, key_of(item), before, after)


def _prune(cluster: Cluster, place: Place, kinds: set[str], wanted: set[Key], dry_run: bool) -> Iterator[Change]:
    """Delete what is ours and no longer wanted. Never what holds data, never what anybody else made."""
    labels = {TENANT: place.name, MANAGED: MANAGER}
    for api, kind in sorted(_split(one) for one in kinds):
        if kind == DATA:
            continue
        for item in cluster.list(api, kind, place.namespace, labels):
            if key_of(item) not in wanted and is_owned(item, place.owner):
                cluster.delete(item, dry_run=dry_run)
                yield Change("deleted", key_of(item), declared(item), {})


def _empty(cluster: Cluster, place: Place, live: Object, data: bool, dry_run: bool) -> Iterator[Change]:
    """Sources and Triggers first: what no longer hears of anything can end what it has begun."""
    kinds = _kinds(live)
    last = {kind for kind in kinds if _split(kind)[1] not in ("Trigger", "PingSource", "IntegrationSource")}
    for part in (kinds - last, last):
        yield from _prune(cluster, place, part, set(), dry_run)
    if data:
        cluster.delete(live, dry_run=dry_run)
        yield Change("deleted", key_of(live), declared(live), {})
    elif kinds:
        after = cluster.apply(_emptied(place), place.manager, dry_run=dry_run, force=True)
        yield Change("changed", key_of(live), declared(live), declared(after))


def _emptied(place: Place) -> Object:
    """A Namespace that keeps only its marks. Applied as a plan is: a patch would be another owner of its fields."""
    labels: Object = {TENANT: place.name, MANAGED: MANAGER}
    annotations: Object = {OWNER: place.owner, KINDS: ""}
    metadata: Object = {"name": place.namespace, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _same_isolation(cluster: Cluster, spec: TenantSpec) -> None:
    """What runs one way is not turned into the other under way: jobs would be lost between two stores."""
    place = spec.place
    if spec.is_dedicated and _entry(cluster, place) is not None:
        raise ClusterError(
            f"{place.name} is among the shared tenants of {place.installation}. When its jobs are done: "
            "`delete` it, move its objects (docs/tenants.md), then `apply`."
        )
    if not spec.is_dedicated:
        live = cluster.get("v1", _namespace(place))
        if live is not None and is_owned(live, place.owner) and _kinds(live):
            raise ClusterError(
                f"{place.name} has stages of its own in {place.namespace}. When its jobs are done: `delete` it, move "
                "its objects (docs/tenants.md), then `apply`."
            )


def _check_owner(live: Object | None, place: Place, key: Key, how: How) -> None:
    if live is None:
        return
    if at(live, "metadata").get("deletionTimestamp"):
        raise ClusterError(f"{key} is being deleted: wait until it is gone, then `apply` again.")
    if not is_owned(live, place.owner) and not how.force:
        raise ClusterError(f"{key} is there already and was not made for {place.owner}: --force takes it over.")


def _entry(cluster: Cluster, place: Place) -> Object | None:
    """The directory, when the tenant is in it."""
    directory = cluster.get("v1", Key("", "ConfigMap", place.installation, DIRECTORY))
    return directory if place.entry in at(directory, "data") else None


def _namespace(place: Place) -> Key:
    return Key("", "Namespace", "", place.namespace)


def _kinds(namespace: Object | None) -> set[str]:
    """As `v1/Secret`."""
    return set(filter(None, text(at(namespace, "metadata", "annotations").get(KINDS)).split(",")))


def _with_kinds(namespace: Object, kinds: set[str]) -> Object:
    copy: Object = json.loads(json.dumps(namespace))
    inside(copy, "metadata", "annotations")[KINDS] = ",".join(sorted(kinds))
    return copy


def _split(kind: str) -> tuple[str, str]:
    api, _, name = kind.rpartition("/")
    return api, name

"""Which tenants a cluster has, where each runs, and whether its stages could take an event. Knows `Cluster`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from infra.tenants.cluster_protocol import Cluster
from infra.tenants.objects import KINDS, MANAGED, MANAGER, TENANT, Key, Object, at, is_owned, name_of, rows, text
from infra.tenants.spec import DIRECTORY, Place
from shared.errors import ConfigError
from shared.tenancy import folder

WATCHED = (
    ("eventing.knative.dev/v1", "Broker"),
    ("serving.knative.dev/v1", "Service"),
    ("eventing.knative.dev/v1", "Trigger"),
)
"""What has to be ready before an event gets through."""
Row = dict[str, str]


def tenants(cluster: Cluster, installation: str, now: float) -> list[Row]:
    """One row for each tenant of this installation, in the order of names. Raises ClusterError."""
    return sorted(
        [*_shared(cluster, installation, now), *_dedicated(cluster, installation)], key=lambda row: row["name"]
    )


def _shared(cluster: Cluster, installation: str, now: float) -> Iterator[Row]:
    directory = cluster.get("v1", Key("", "ConfigMap", installation, DIRECTORY))
    files = {name: text(value) for name, value in at(directory, "data").items() if name.endswith(folder.SUFFIX)}
    state = readiness(cluster, installation) if files else ""
    for name, file in files.items():
        yield _row(name.removesuffix(folder.SUFFIX), "shared", installation, _fault(name, file, now) or state)


def _fault(name: str, file: str, now: float) -> str:
    """Why the processes cannot use an entry; empty when they can."""
    try:
        tenant = folder.parse(name, file, now)
    except ConfigError as error:
        return f"file unusable: {error.context['field']}: {error.detail}"
    return "" if tenant.policy.isolation == "shared" else "file says dedicated"


def _dedicated(cluster: Cluster, installation: str) -> Iterator[Row]:
    for namespace in cluster.list("v1", "Namespace", labels={MANAGED: MANAGER}):
        metadata = at(namespace, "metadata")
        name = text(at(metadata, "labels").get(TENANT))
        if (
            not is_owned(namespace, f"{installation}/{name}")
            or name_of(namespace) != Place(name, installation).namespace
        ):
            continue
        if metadata.get("deletionTimestamp"):
            state = "being deleted"
        elif not at(metadata, "annotations").get(KINDS):
            state = "deleted, its data kept"
        else:
            state = readiness(cluster, name_of(namespace), {TENANT: name})
        yield _row(name, "dedicated", name_of(namespace), state)


def readiness(cluster: Cluster, namespace: str, labels: Mapping[str, str] | None = None) -> str:
    """`ready`, or how many parts are not, and why the first is not."""
    found = [item for api, kind in WATCHED for item in cluster.list(api, kind, namespace, labels)]
    waiting = [problem for item in found if (problem := _problem(item))]
    if not found:
        return "no stages"
    return f"{len(waiting)} of {len(found)} not ready: {waiting[0]}" if waiting else "ready"


def _problem(item: Object) -> str:
    status = at(item, "status")
    ready = next((row for row in rows(status.get("conditions")) if row.get("type") == "Ready"), {})
    stale = status.get("observedGeneration") not in (None, at(item, "metadata").get("generation"))
    if ready.get("status") == "True" and not stale:
        return ""
    reason = text(ready.get("reason")) or ("not seen by its controller yet" if stale or not ready else "waiting")
    return f"{item.get('kind')} {name_of(item)} ({reason})"


def _row(name: str, isolation: str, namespace: str, state: str) -> Row:
    return {"name": name, "isolation": isolation, "namespace": namespace, "state": state}

"""What a tenant is on a cluster: its file becomes objects. Pure: the same file and manifests give the same objects.

A shared tenant is one key of the directory's ConfigMap. A dedicated one is the whole installation once more, in a
namespace of its own: its own intake and broker too. A common intake would have to hold credentials for the tenant's
part of the bucket and keys that sign its events, and a Trigger cannot lead into another namespace; an intake that
sleeps costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from infra.tenants import scale, secret_plan
from infra.tenants.objects import (
    KINDS,
    MANAGED,
    MANAGER,
    ONCE,
    OWNER,
    TENANT,
    Object,
    api_of,
    at,
    inside,
    key_of,
    kind_of,
    name_of,
    text,
)
from infra.tenants.spec import DIRECTORY, Place, TenantSpec
from shared.errors import ConfigError

ORDER = (
    "Namespace", "ResourceQuota", "LimitRange", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding", "ConfigMap",
    "Secret", "PersistentVolumeClaim", "RabbitmqBrokerConfig", "Broker", "DaemonSet", "Service", "Trigger",
    "SinkBinding",
)  # fmt: skip
"""What others need comes first; whatever is not listed, such as a source of events, comes last."""


def plan(spec: TenantSpec, rendered: Sequence[Object] = ()) -> list[Object]:
    """Every object of the tenant, in the order in which they are applied. `rendered`: what a dedicated one is made
    from (see `rendering`). Raises ConfigError naming a field of the tenant's file, or an object of the overlay.
    """
    if not spec.is_dedicated:
        return [_directory(spec, spec.place.installation)]
    objects = [deepcopy(item) for item in rendered if _is_the_tenants(item)]
    for item in objects:
        _check_place(item, spec.place)
    objects = _sources(objects, spec)
    _store(objects, spec.place)
    scale.share_gpus(objects, spec.tenant.dedicated)
    scale.quota(objects, spec.tenant.dedicated)
    objects += [_directory(spec, spec.place.namespace), *secret_plan.secrets(objects, spec.place)]
    _mark(objects, spec.place)
    return sorted(objects, key=lambda item: (_rank(item), key_of(item)))


def _is_the_tenants(item: Object) -> bool:
    """Not what is made anew for it (its Secrets, its directory), nor what the cluster wants once."""
    once = at(item, "metadata", "labels").get(ONCE) == "true"
    return kind_of(item) != "Secret" and name_of(item) != DIRECTORY and not once


def _directory(spec: TenantSpec, namespace: str) -> Object:
    """The ConfigMap with this tenant's file; what else it may hold belongs to other field managers."""
    metadata: Object = {"name": DIRECTORY, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {spec.place.entry: spec.text}}


def _check_place(item: Object, place: Place) -> None:
    """Nothing that two tenants would share, or that lies outside of the tenant's namespace."""
    own = name_of(item) if kind_of(item) == "Namespace" else at(item, "metadata").get("namespace")
    if own != place.namespace:
        raise ConfigError(
            f"{key_of(item)} lies outside of {place.namespace}: leave it to another overlay.",
            context={"field": "--overlay"},
        )


def _sources(objects: list[Object], spec: TenantSpec) -> list[Object]:
    """A queue that everybody's uploads come through is nobody's: the tenant's own, or none."""
    queue = spec.tenant.dedicated.queue
    kept = [item for item in objects if queue or "sqs" not in at(item, "spec", "aws")]
    for item in kept:
        sqs = at(item, "spec", "aws", "sqs")
        if sqs:
            sqs.update(arn=queue, region=queue.split(":")[3])
    return kept


def _store(objects: list[Object], place: Place) -> None:
    """The tenant's part of the bucket, as if it were a bucket of its own; and no tenant of the setting's."""
    for item in objects:
        data = at(item, "data")
        if kind_of(item) == "ConfigMap" and text(data.get("WAKESWAP_STORE_URL")):
            data["WAKESWAP_STORE_URL"] = f"{text(data['WAKESWAP_STORE_URL']).rstrip('/')}/{place.objects}"
            data["WAKESWAP_TENANTS"] = "{}"


def store_url(objects: Sequence[Object]) -> str:
    """Where the stages of a plan keep their objects. Raises ConfigError when no ConfigMap says it."""
    return _setting(objects, "WAKESWAP_STORE_URL")


def model_bucket(objects: Sequence[Object]) -> str:
    """Empty: there is none."""
    return next((text(at(item, "data").get("WAKESWAP_MODEL_BUCKET")) for item in _configs(objects)), "")


def _setting(objects: Sequence[Object], name: str) -> str:
    for item in _configs(objects):
        if found := text(at(item, "data").get(name)):
            return found
    raise ConfigError(f"No ConfigMap sets {name}.", context={"field": "--overlay"})


def _configs(objects: Sequence[Object]) -> list[Object]:
    return [item for item in objects if kind_of(item) == "ConfigMap" and name_of(item) == "wakeswap"]


def _mark(objects: Sequence[Object], place: Place) -> None:
    kinds = ",".join(sorted({f"{api_of(item)}/{kind_of(item)}" for item in objects} - {"v1/Namespace"}))
    for item in objects:
        inside(item, "metadata", "labels").update({TENANT: place.name, MANAGED: MANAGER})
        annotations = inside(item, "metadata", "annotations")
        annotations[OWNER] = place.owner
        if kind_of(item) == "Namespace":
            annotations[KINDS] = kinds


def _rank(item: Object) -> int:
    return ORDER.index(kind_of(item)) if kind_of(item) in ORDER else len(ORDER)

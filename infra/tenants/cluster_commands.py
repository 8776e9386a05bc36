"""The commands for a cluster: plan, diff, apply, delete, list. The client is imported by those that talk to one."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from infra.tenants import applying, bucket_policy, cluster_views, files, inventory, rendering, secret_values
from infra.tenants.applying import Change, How
from infra.tenants.cluster_protocol import Cluster
from infra.tenants.objects import Object
from infra.tenants.plan import plan, store_url
from infra.tenants.spec import Place, TenantSpec, namespace
from shared.errors import ConfigError
from shared.tenancy import folder

Command = Callable[[argparse.Namespace, Path, float], int]
Adder = Callable[[str, Command, str], argparse.ArgumentParser]
DIFFERENT = 3
"""Exit status of `diff` when something would change."""


def add(command: Adder) -> None:
    """Declare the commands. `command` makes a parser for a name, what runs and its help."""
    shown = command("plan", _plan, "a tenant's objects on a cluster, as YAML; asks no cluster")
    shown.add_argument("--bucket-policy", action="store_true", help="instead, what its bucket credentials may do")
    diff = command("diff", _diff, f"what `apply` would change; exit status {DIFFERENT} when it is something")
    apply = command("apply", _apply, "make the cluster be as planned, and remove what it no longer needs of the tenant")
    delete = command("delete", _delete, "take a tenant off the cluster; its data stays")
    listed = command("list", _list, "the cluster's tenants, where they run and whether their stages are ready")
    for one in (shown, diff, apply):
        one.add_argument("--folder", default="", help="default: WAKESWAP_TENANTS_FOLDER")
        one.add_argument("--overlay", type=Path, default=rendering.OVERLAY, help="what a dedicated tenant is made from")
    for one in (shown, diff, apply, delete):
        one.add_argument("name", help="the tenant")
    for one in (shown, diff, apply, delete, listed):
        one.add_argument("--namespace", default="wakeswap", help="of the shared stages (default: %(default)s)")
    for one in (diff, apply, delete, listed):
        one.add_argument("--context", default="", help="of the kubeconfig (default: its current one)")
    for one in (diff, apply):
        one.add_argument("--force", action="store_true", help="take over objects and fields that others have set")
        one.add_argument(
            "--secret", action="append", default=[], metavar="NAME=FILE", help="values of a Secret, lines KEY=value"
        )
    for one in (apply, delete):
        one.add_argument("--dry-run", choices=("server",), help="the cluster checks everything and changes nothing")
    delete.add_argument(
        "--data", metavar="NAME", help="the tenant's name again: its namespace too, with volumes and all that is in it"
    )
    delete.set_defaults(reads_folder=False)
    listed.set_defaults(reads_folder=False)


def _plan(arguments: argparse.Namespace, root: Path, now: float) -> int:
    spec, objects = _planned(arguments, root, now)
    if not arguments.bucket_policy:
        cluster_views.print_objects(objects)
        return 0
    if not spec.is_dedicated:
        raise ConfigError("Only a dedicated tenant has credentials of its own.", context={"field": arguments.name})
    print(json.dumps(bucket_policy.document(objects, spec.place), indent=2))
    return 0


def _diff(arguments: argparse.Namespace, root: Path, now: float) -> int:
    changes = [change for change in _changes(arguments, root, now, dry_run=True) if change.what != "unchanged"]
    if arguments.json:
        print(json.dumps([cluster_views.facts(change) for change in changes], indent=2))
    else:
        cluster_views.print_diff(changes)
    return DIFFERENT if changes else 0


def _apply(arguments: argparse.Namespace, root: Path, now: float) -> int:
    dry_run = bool(arguments.dry_run)
    changes = _told(arguments, _changes(arguments, root, now, dry_run=dry_run), dry_run)
    for change in changes:
        if change.what not in ("deleted", "unchecked") and secret_values.is_empty(change.after):
            print(f"{change.key} has no values: --secret {change.key.name}=FILE brings them.", file=sys.stderr)
    return 0


def _delete(arguments: argparse.Namespace, _: Path, __: float) -> int:
    place = Place(arguments.name, arguments.namespace)
    if arguments.data not in (None, place.name):
        raise ConfigError(f"Must be {place.name}, the tenant whose data is to go.", context={"field": "--data"})
    dry_run, data = bool(arguments.dry_run), arguments.data is not None
    done = _told(arguments, applying.delete(_cluster(arguments), place, data=data, dry_run=dry_run), dry_run)
    own = any(change.key.kind == "Namespace" for change in done)
    kept = f"the namespace {place.namespace} with its volumes, and " if own and not data else ""
    print(f"Kept: {kept}every object in the bucket.", file=sys.stderr)
    return 0


def _list(arguments: argparse.Namespace, _: Path, now: float) -> int:
    rows = inventory.tenants(_cluster(arguments), namespace(arguments.namespace), now)
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        cluster_views.print_tenants(rows)
    return 0


def _planned(arguments: argparse.Namespace, root: Path, now: float) -> tuple[TenantSpec, list[Object]]:
    path = files.path_of(root, arguments.name)
    tenant, text = folder.read(path, now), path.read_text(encoding="utf-8")
    spec = TenantSpec(tenant, text, Place(arguments.name, arguments.namespace))
    objects = plan(spec, rendering.render(spec, arguments.overlay) if spec.is_dedicated else ())
    if spec.is_dedicated:
        store_url(objects)
    return spec, objects


def _changes(arguments: argparse.Namespace, root: Path, now: float, *, dry_run: bool) -> Iterator[Change]:
    spec, objects = _planned(arguments, root, now)
    brought = secret_values.read(arguments.secret)
    secret_values.check(brought, objects)
    return applying.apply(_cluster(arguments), spec, objects, How(dry_run, arguments.force, brought))


def _told(arguments: argparse.Namespace, changes: Iterator[Change], dry_run: bool) -> list[Change]:
    """Each as it happens, so that what was done before an error is seen; or all at the end, for programs."""
    done: list[Change] = []
    for change in changes:
        done.append(change)
        if not arguments.json and change.what != "unchanged":
            cluster_views.print_change(change, dry_run=dry_run)
    if arguments.json:
        print(json.dumps([cluster_views.facts(change) for change in done], indent=2))
    elif unchanged := sum(change.what == "unchanged" for change in done):
        print(f"{unchanged} unchanged")
    return done


def _cluster(arguments: argparse.Namespace) -> Cluster:
    from infra.tenants.cluster import KubernetesCluster

    return KubernetesCluster.connect(os.environ.get("KUBECONFIG", ""), arguments.context)

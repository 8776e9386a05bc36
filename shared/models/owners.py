"""Which tenants have models of their own in the bucket, as the node knew when it last looked.

    <root>/.tags/.owners.json      {<tenant>: [<model>, ...]}

The init step lists the bucket; a function takes the node's note, so that the jobs of a tenant without models of its own
cost no request. Without a note every tenant may have some.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from shared.models.bucket import PREFIX, base, said
from shared.storage.protocol import ObjectStore, Page
from shared.tenancy.tenant import Tenant

NAME = ".owners.json"

Owners = Mapping[str, tuple[str, ...]]
"""By tenant, the names of its models."""


class Choice(NamedTuple):
    """Which versions of the models a tenant's jobs use."""

    owner: str
    """The tenant whose own models come first; empty: there are none."""
    tag: str
    """Version or channel."""


def choice(tenant: Tenant, tag: str, owners: Owners | None) -> Choice:
    """`tag`: the installation's; `owners`: who has models of its own, None where that is not known."""
    tag = tenant.policy.model_tag or tag
    mine = bool(tag) and (owners is None or tenant.name in owners)
    return Choice(tenant.name if mine else "", tag)


def look(store: ObjectStore) -> Owners:
    """What the bucket has now. Raises ModelError and its kin."""
    prefix = f"{PREFIX}tenants/"
    tenants = [found.removeprefix(prefix).rstrip("/") for page in _pages(store, prefix, "/") for found in page.prefixes]
    return {tenant: names for tenant in tenants if (names := _names(store, tenant))}


def note(folder: Path, owners: Owners) -> None:
    """For the functions of this node; nothing where the folder is read-only."""
    fresh = folder / f".{uuid.uuid4().hex}"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        fresh.write_text(json.dumps(owners), encoding="utf-8")
        os.replace(fresh, folder / NAME)


def noted(folder: Path) -> Owners | None:
    """None when nobody has looked."""
    try:
        owners = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return {str(tenant): tuple(map(str, names)) for tenant, names in owners.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _names(store: ObjectStore, tenant: str) -> tuple[str, ...]:
    infos = (info for page in _pages(store, f"{base(tenant)}index/", "") for info in page.objects)
    return tuple(sorted({info.key.rpartition("/")[2].partition("@")[0] for info in infos}))


def _pages(store: ObjectStore, prefix: str, delimiter: str) -> Iterator[Page]:
    cursor = ""
    while True:
        with said(prefix):
            page = store.list(prefix, cursor=cursor, delimiter=delimiter)
        yield page
        cursor = page.cursor
        if not cursor:
            return

"""The usage records of a tenant's month, out of the store. Knows the store and the record."""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import ObjectNotFoundError, RejectedError
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.usage import record
from shared.usage.record import Usage


@dataclass(frozen=True)
class Month:
    records: tuple[Usage, ...]
    """In the order of the jobs' ids."""
    damaged: tuple[str, ...]
    """Keys of records that cannot be read."""
    foreign: tuple[str, ...]
    """Keys of records that can, and belong elsewhere: of another tenant or month, or a job's second."""


def month(store: ObjectStore, tenant: str, name: str) -> Month:
    """`name`: YYYY-MM. Raises UnknownTenantError for what is no tenant's name."""
    found: list[Usage] = []
    damaged: list[str] = []
    foreign: list[str] = []
    cursor = ""
    while True:
        page = store.list(keys.usage(tenant, name), cursor=cursor)
        for entry in page.objects:
            try:
                one = record.read(store.get(entry.key)[0])
            except ObjectNotFoundError:
                continue  # deleted while we were reading
            except ValueError:
                damaged.append(entry.key)
            else:
                if _is_at(one, tenant, entry.key):
                    found.append(one)
                else:
                    foreign.append(entry.key)
        cursor = page.cursor
        if not cursor:
            return Month(tuple(found), tuple(damaged), tuple(foreign))


def _is_at(one: Usage, tenant: str, key: str) -> bool:
    """Whether the record says of itself what its place says: the one place of its job."""
    try:
        return one.tenant == tenant and keys.usage(one.tenant, one.accepted[:7], one.job) == key
    except RejectedError:
        return False

"""The usage records of a tenant's month, out of the store. Knows the store and the record."""

from __future__ import annotations

from dataclasses import dataclass

from shared.errors import ObjectNotFoundError
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


def month(store: ObjectStore, tenant: str, name: str) -> Month:
    """`name`: YYYY-MM. Raises UnknownTenantError for what is no tenant's name."""
    found: list[Usage] = []
    damaged: list[str] = []
    cursor = ""
    while True:
        page = store.list(keys.usage(tenant, name), cursor=cursor)
        for entry in page.objects:
            try:
                found.append(record.read(store.get(entry.key)[0]))
            except ObjectNotFoundError:
                continue  # deleted while we were reading
            except ValueError:
                damaged.append(entry.key)
        cursor = page.cursor
        if not cursor:
            return Month(tuple(found), tuple(damaged))

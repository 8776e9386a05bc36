"""The audit in the object store: written once, never changed, one object for what one event or request decided.

    system/audit/<day>/<tenant>/<job>.<part>.jsonl

The key comes from what was decided, and the day from when it first came up, so a repeat, also one after midnight,
meets the object that is there and writes no second line. An error of the store is the caller's: an event is then
delivered again, with all it decided. Knows the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from shared import records
from shared.audit.lines import Entry, Line
from shared.audit.marks import Marks
from shared.errors import ObjectNotFoundError, PreconditionFailedError
from shared.storage import keys
from shared.storage.protocol import ObjectStore

JSON_LINES = "application/jsonl"
NOBODY = keys.NOBODY
"""In place of a tenant, where none is known."""
UNREADABLE = "unreadable"
"""What stands in place of a line that nobody can read."""


@dataclass(frozen=True)
class Trail:
    store: ObjectStore
    marks: Marks = field(default_factory=Marks)
    now: Callable[[], float] = time.time

    def write(self, tenant: str, job: str, part: str, when: str, lines: Iterable[Line]) -> None:
        """Put these on record, unless a repeat comes. No lines, no write.

        `part` tells the decisions about one job apart; `when` (RFC 3339), of which only the day counts, must be the
        same in every repeat. What is no time counts as now.
        """
        at = _stamp(self.now())
        kept = [Entry(at, tenant, job, one.what, one.decision, one.by, one.code, one.facts) for one in lines]
        if not kept:
            return
        key = keys.audit(_day(when) or at[:10], tenant, f"{job or '_'}.{part}.jsonl")
        data = b"".join(records.dumps(records.write(entry)) + b"\n" for entry in kept)
        with suppress(PreconditionFailedError):
            self.store.create(key, data, content_type=JSON_LINES)

    def of_day(self, tenant: str, day: str, job: str = "") -> list[Entry]:
        """A tenant's lines of a day, all or of one job, in the order of their times."""
        prefix = keys.audit(day, tenant) + (f"{job}." if job else "")
        return sorted(self._read(prefix), key=lambda entry: entry.at)

    def of_job(self, tenant: str, job: str) -> list[Entry]:
        """All lines about a job; looks into every day."""
        return sorted((one for day in self.days() for one in self.of_day(tenant, day, job)), key=lambda one: one.at)

    def days(self) -> list[str]:
        """YYYY-MM-DD, the first first."""
        found, cursor, base = [], "", keys.audit()
        while True:
            page = self.store.list(base, cursor=cursor, delimiter="/")
            found += [prefix[len(base) :].rstrip("/") for prefix in page.prefixes]
            if not (cursor := page.cursor):
                return sorted(filter(keys.is_day, found))

    def _read(self, prefix: str) -> Iterator[Entry]:
        cursor = ""
        while True:
            page = self.store.list(prefix, cursor=cursor)
            for info in page.objects:
                with suppress(ObjectNotFoundError):
                    yield from _entries(info.key, self.store.get(info.key)[0])
            if not (cursor := page.cursor):
                return


def _entries(key: str, data: bytes) -> Iterator[Entry]:
    for text in data.splitlines():
        try:
            yield records.read(Entry, records.loads(text))
        except ValueError:  # a disk that lost power, or somebody who could write past us
            _, _, day, tenant, name = key.split("/")
            yield Entry(day, tenant, name.partition(".")[0].strip("_"), UNREADABLE, "", "", facts={"key": key})


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _day(when: str) -> str:
    """Empty for what is no time."""
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(when).astimezone(UTC).strftime("%Y-%m-%d")
    return ""

"""PingSource: one event at each moment of a cron schedule.

The event's id is made of the moment, so a platform that restarts within the same minute repeats nothing. Runs that
fell into a time without a platform are told in the log, not made up: a batch that was due at night must not start
at noon.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

from cronsim import CronSim

from infra.local.eventing.cloudevent import CloudEvent
from infra.local.sources.emit import Emitter
from infra.local.sources.spec import PingSource
from infra.local.state import StateError, write_private

log = logging.getLogger(__name__)

EVENT_TYPE = "dev.knative.sources.ping"
LATE = timedelta(seconds=30)
"""A run that could not start this long after its moment (the machine was asleep) counts as missed."""
LONGEST_SLEEP = 30.0
COUNTED = 1000


class PingMemory:
    """The last moment of each source that was sent, in one JSON file."""

    def __init__(self, path: Path) -> None:
        """Raises StateError for a damaged file."""
        self._path = path
        try:
            kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            self._last = {source: datetime.fromisoformat(text) for source, text in kept.items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise StateError(f"{path} is damaged ({error}): remove it; missed runs are then not told") from error

    def last(self, source: str) -> datetime | None:
        """The moment, None before the first."""
        return self._last.get(source)

    def remember(self, source: str, moment: datetime) -> None:
        """Keep it over restarts, if the disk takes it."""
        self._last[source] = moment.astimezone(UTC)
        try:
            write_private(self._path, json.dumps({name: last.isoformat() for name, last in self._last.items()}))
        except OSError as error:
            log.warning("run not remembered: %s", error)


def moments(source: PingSource, after: datetime) -> Iterator[datetime]:
    """The schedule's moments after `after`, in the source's own time zone; daylight saving is cronsim's business."""
    return CronSim(source.schedule, after.astimezone(ZoneInfo(source.timezone)))


def ping_event(source: PingSource, moment: datetime) -> CloudEvent:
    """The event of one moment; the same moment gives the same id."""
    due = moment.astimezone(UTC)
    attributes = {
        "specversion": "1.0",
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{source.source}#{due.isoformat()}")),
        "source": source.source,
        "type": EVENT_TYPE,
        "time": due.strftime("%Y-%m-%dT%H:%M:%SZ"),
        **source.extensions,
    }
    if source.content_type:
        attributes["datacontenttype"] = source.content_type
    return CloudEvent(attributes, source.data.encode() if source.data is not None else None)


class PingRunner:
    """Runs one PingSource until cancelled."""

    def __init__(self, source: PingSource, emitter: Emitter, memory: PingMemory) -> None:
        self._source = source
        self._emitter = emitter
        self._memory = memory

    async def run(self) -> None:
        """Sleep from moment to moment, by the clock on the wall."""
        now = datetime.now(UTC)
        self._report_missed(now)
        for moment in moments(self._source, now):
            await _until(moment)
            if datetime.now(UTC) - moment > LATE:
                log.warning("%s: run of %s missed, this machine was not awake", self._source.name, moment.isoformat())
                continue
            await self._fire(moment)

    async def _fire(self, moment: datetime) -> None:
        if await self._emitter.emit(ping_event(self._source, moment), self._source.sink):
            self._memory.remember(self._source.source, moment)
        else:
            log.error("%s: run of %s lost, its sink takes no event", self._source.name, moment.isoformat())

    def _report_missed(self, now: datetime) -> None:
        last = self._memory.last(self._source.source)
        if last is None:
            return
        missed = [moment for moment in islice(moments(self._source, last), COUNTED) if moment <= now]
        if missed:
            more = "or more " if len(missed) == COUNTED else ""
            first = missed[0].isoformat()
            log.warning("%s: %d %sruns missed since %s", self._source.name, len(missed), more, first)


async def _until(moment: datetime) -> None:
    """Sleep in short steps: a timer of the event loop stands still while the machine sleeps."""
    while (left := (moment - datetime.now(UTC)).total_seconds()) > 0:
        await asyncio.sleep(min(left, LONGEST_SLEEP))

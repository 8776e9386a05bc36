"""What the front door puts on record itself: who is turned away before there is a job, and who cancels one.

A refusal is told whatever becomes of its record: there is no event that could bring it again, so one that the store
does not take is logged and counted. Refusals for asking too often come as often as somebody asks, so each who and why
is on record once a minute. Knows the audit; no web framework.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from hashlib import sha256
from logging import getLogger

from shared.audit.lines import ACCESS, CANCELLED, JOB, REFUSED, Line, known
from shared.audit.trail import NOBODY, Trail
from shared.context import Metrics
from shared.errors import JsonValue, StorageError, TransientError, WakeswapError
from shared.jobs.records import timestamp

log = getLogger(__name__)

MOST = 1000
"""Refusals of one process in one minute that are on record; guessers with many addresses must not fill the store."""


class FrontAudit:
    """Without a trail nothing is on record: only for tests of the routes."""

    def __init__(
        self, trail: Trail | None = None, metrics: Metrics | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self._trail, self._metrics, self._now = trail, metrics, now
        self._minute, self._seen = "", set[str]()
        self._lock = threading.Lock()

    def turned_away(self, error: WakeswapError, *, tenant: str = "", by: str = "", address: str = "") -> None:
        """A request that came to nothing, once a minute. `by`: a caller's `key_id`; `address`: where none is known."""
        if self._trail is None:
            return
        by = by or f"address:{self._trail.marks.address(address) or 'not_kept'}"
        minute = timestamp(self._now())[:16]
        part = sha256(f"{minute}\n{tenant}\n{by}\n{error.code}".encode()).hexdigest()[:16]
        if self._is_new(minute, part):
            self._write(tenant or NOBODY, "", f"access.{part}", Line(ACCESS, REFUSED, by, error.code, _facts(error)))

    def refused(self, error: WakeswapError, tenant: str, by: str, job: str) -> None:
        """A job that was asked for and may not be, or cannot: its pictures, its options, its sources."""
        part = sha256(f"{by}\n{error.code}".encode()).hexdigest()[:16]
        self._write(tenant, job, f"refused.{part}", Line(JOB, REFUSED, by, error.code, _facts(error)))

    def cancelled(self, tenant: str, by: str, job: str, when: str) -> None:
        """`when`: RFC 3339, as the job's record has it. Raises what the store raises: DELETE can be sent again."""
        if self._trail is not None:
            self._trail.write(tenant, job, CANCELLED, when, [Line(JOB, CANCELLED, by)])

    def _is_new(self, minute: str, part: str) -> bool:
        with self._lock:
            if minute != self._minute:
                self._minute, self._seen = minute, set()
            new = part not in self._seen and len(self._seen) < MOST
            if new:
                self._seen.add(part)
        if not new and self._metrics is not None:
            self._metrics.count("refusals_repeated")
        return new

    def _write(self, tenant: str, job: str, part: str, line: Line) -> None:
        if self._trail is None:
            return
        try:
            self._trail.write(tenant, job, part, timestamp(self._now()), [line])
        except (TransientError, StorageError):
            log.exception("a refusal is not on record", extra={"code": line.code})
            if self._metrics is not None:
                self._metrics.count("refusals_not_audited")


def _facts(error: WakeswapError) -> dict[str, JsonValue]:
    return known(dict(error.context))

"""How many jobs a tenant may have under way and take in: decisions over one small record of its usage.

Pure: no clock and no store. Whoever keeps the record writes it by compare and swap, so that a decision counts only
if nothing has changed since the record was read. Knows the tenant's policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from shared.tenancy.tenant import Policy

MINUTE, DAY = 60, 86_400
"""Lengths of the windows in seconds; a day begins at midnight UTC."""
LONGEST_LEASE = 90_000.0
"""Seconds: the longest that WAKESWAP_SLOT_SECONDS allows, and an hour by which another machine's clock may be ahead. A
lease that ends later comes from a clock that was wrong, and counts as run out."""
FULL_WAIT = 5
"""Retry-After in seconds when every slot is taken: about a job's length, since nobody knows when one will end."""


@dataclass(frozen=True)
class Slot:
    """One job under way."""

    job: str
    batch: bool
    taken: float
    """Seconds since the epoch."""
    expires: float
    """Seconds since the epoch; from then on another job may have the slot."""

    def live(self, now: float) -> bool:
        return now < self.expires <= now + LONGEST_LEASE


@dataclass(frozen=True)
class Window:
    """Jobs taken in within one minute or day."""

    number: int = 0
    """Counted from the epoch."""
    jobs: int = 0

    def at(self, now: float, seconds: int) -> Window:
        """The window that counts now: this one, also a little before it begins (another machine's clock is ahead)."""
        current = int(now // seconds)
        return self if current <= self.number <= current + 1 else Window(current)


@dataclass(frozen=True)
class Usage:
    """What a tenant has of its quota. A job stands in at most one slot."""

    slots: tuple[Slot, ...] = ()
    minute: Window = field(default_factory=Window)
    day: Window = field(default_factory=Window)


@dataclass(frozen=True)
class Limit:
    """A limit that one more job would break."""

    name: str
    """The policy's field."""
    value: int
    wait: int
    """Seconds until it may be different."""


def held(usage: Usage, job: str) -> Slot | None:
    """The job's slot, as long as nobody else has got it: also one whose lease has run out."""
    return next((slot for slot in usage.slots if slot.job == job), None)


def broken(usage: Usage, policy: Policy, *, batch: bool, now: float) -> Limit | None:
    """The limit that one more job would break; of several, the one that lasts longest."""
    return max(_broken(usage, policy, batch, now), key=lambda limit: limit.wait, default=None)


def take(usage: Usage, job: str, *, batch: bool, now: float, seconds: float) -> Usage:
    """The usage with a slot for `job`, counted once; ask `broken` before. Slots whose leases ran out are given up.

    A job that has a slot keeps it, with a new lease, and is not counted again.
    """
    if held(usage, job):
        return renew(usage, job, now=now, seconds=seconds)
    live = tuple(slot for slot in usage.slots if slot.live(now))
    minute, day = usage.minute.at(now, MINUTE), usage.day.at(now, DAY)
    return Usage(
        (*live, Slot(job, batch, now, now + seconds)),
        replace(minute, jobs=minute.jobs + 1),
        replace(day, jobs=day.jobs + 1),
    )


def renew(usage: Usage, job: str, *, now: float, seconds: float) -> Usage:
    """The usage with a full lease for the job's slot, if less than half of it is left. A slot that is gone stays so."""
    return replace(
        usage,
        slots=tuple(
            replace(slot, expires=now + seconds)
            if slot.job == job and not now + seconds / 2 < slot.expires <= now + LONGEST_LEASE
            else slot
            for slot in usage.slots
        ),
    )


def release(usage: Usage, job: str) -> Usage:
    """The usage without the job's slot; the same when it has none."""
    return replace(usage, slots=tuple(slot for slot in usage.slots if slot.job != job))


def give_back(usage: Usage, job: str) -> Usage:
    """`release` for a job that never began: it is not counted either."""
    slot = held(usage, job)
    if slot is None:
        return usage
    minute, day = _less(usage.minute, slot, MINUTE), _less(usage.day, slot, DAY)
    return replace(release(usage, job), minute=minute, day=day)


def _less(window: Window, slot: Slot, seconds: int) -> Window:
    counted = window.number in (int(slot.taken // seconds), int(slot.taken // seconds) + 1)
    return replace(window, jobs=max(window.jobs - 1, 0)) if counted else window


def _broken(usage: Usage, policy: Policy, batch: bool, now: float) -> Iterator[Limit]:
    live = [slot for slot in usage.slots if slot.live(now)]
    if len(live) >= policy.max_concurrent:
        yield Limit("max_concurrent", policy.max_concurrent, FULL_WAIT)
    if batch and sum(slot.batch for slot in live) >= policy.max_batch:
        yield Limit("max_batch", policy.max_batch, FULL_WAIT)
    if usage.minute.at(now, MINUTE).jobs >= policy.jobs_per_minute:
        yield Limit("jobs_per_minute", policy.jobs_per_minute, MINUTE - int(now) % MINUTE)
    if usage.day.at(now, DAY).jobs >= policy.jobs_per_day:
        yield Limit("jobs_per_day", policy.jobs_per_day, DAY - int(now) % DAY)

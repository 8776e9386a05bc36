"""What of a job is due to be deleted, decided over a listing of its folder, its tenant's policy and the time.

Times are those of the store: of the record with which the job ended, of the youngest object where it has not. Pure;
knows names and how long things are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.jobs.records import CANCELLED, JOB, OUTCOME
from shared.tenancy.tenant import Policy

HOUR = 3600.0
INPUTS, RESULT, RECORDS, STRAY, UPLOADS, LEFTOVERS = (
    "inputs",
    "result",
    "records",
    "stray",
    "uploads",
    "leftovers",
)
"""What can be due: the pictures that were sent for a job and what its stages made of them; its result; all that is
written about it; a folder or a result of no job; uploads that no job took; records of deliveries, dead letters and
places that lead nowhere."""
ABANDONED = "abandoned"
"""A job that nothing has moved for too long: it is ended, and what is due is so after that end."""
SWEPT = "swept.json"
"""In a job's folder: its inputs have been deleted, since its end."""
_INPUT = "input/"


@dataclass(frozen=True)
class Terms:
    """How long things are kept, in seconds."""

    inputs: float
    results: float
    abandoned: float

    @classmethod
    def of(cls, policy: Policy, abandoned_hours: int) -> Terms:
        return cls(policy.keep_inputs_hours * HOUR, policy.keep_results_hours * HOUR, abandoned_hours * HOUR)


def due(files: Mapping[str, float], terms: Terms, now: float) -> tuple[str, ...]:
    """Which of INPUTS, RESULT, RECORDS are due of a job that has ended, or ABANDONED, or STRAY, or nothing.

    `files`: name below the job's folder -> when it was written, in seconds since the epoch as `now`.
    """
    ended = end(files)
    if ended is None:
        return _unended(files, terms, now)
    found = []
    if now >= ended + terms.inputs and _holds_inputs(files, ended):
        found.append(INPUTS)
    if now >= ended + terms.results:
        found.append(RESULT)
    if now >= ended + max(terms.inputs, terms.results):
        found.append(RECORDS)
    return tuple(found)


def end(files: Mapping[str, float]) -> float | None:
    """When the job ended, the last time if it was replayed; None when it has not."""
    return max((files[name] for name in (OUTCOME, CANCELLED) if name in files), default=None)


def is_record(name: str) -> bool:
    """Whether a file of a job tells what happened, and is neither a picture nor made of one."""
    return name.endswith(".json")


def _holds_inputs(files: Mapping[str, float], ended: float) -> bool:
    """Whether inputs may be left: also in the inbox, of which the folder says nothing."""
    return files.get(SWEPT, 0.0) < ended or not all(map(is_record, files))


def _unended(files: Mapping[str, float], terms: Terms, now: float) -> tuple[str, ...]:
    """A folder without the record of a job is what a request left behind that came to nothing, or was cut off."""
    youngest = max(files.values(), default=now)
    if JOB in files:
        return (ABANDONED,) if now >= youngest + terms.abandoned else ()
    kept = terms.inputs if all(name.startswith(_INPUT) for name in files) else terms.abandoned
    return (STRAY,) if now >= youngest + kept else ()

"""How far a video is: which of its segments are done, which is asked for next, and who joins them.

    jobs/<job>/split/plan.json              how the video is divided
    jobs/<job>/assemble/clip.<index>.json   a segment is done; the first clip of a segment counts
    jobs/<job>/assemble/first.json          the first that shows someone whom the job means, where that matters
    jobs/<job>/assemble/claim.json          the event whose turn it is to join, written when all are done

All of it is decided by conditional writes, so that events in any order, twice, or at once lead to one joined video.
Knows the store, the payloads and the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from shared import records
from shared.errors import BusyError, ObjectNotFoundError, PreconditionFailedError
from shared.events.payloads import Clip, Face, ObjectRef
from shared.jobs.records import JSON
from shared.storage import keys
from shared.storage.protocol import ObjectStore
from shared.storage.scoped import TenantStore
from shared.video.plan import Plan

SPLIT, ASSEMBLE = "split", "assemble"
"""The stages that keep these records."""
PLAN = "plan.json"
_CLAIM = "claim.json"
_FIRST = "first.json"
_CLIP = "clip."


@dataclass(frozen=True)
class Done:
    """What is known of a finished segment: its clip without what all segments share."""

    clip: ObjectRef
    frames: int
    frames_swapped: int
    frames_without_face: int
    source_faces: tuple[Face, ...]
    warnings: tuple[str, ...]
    provider: str


@dataclass(frozen=True)
class Progress:
    """Of a video that was divided."""

    frames_done: int
    """Of segments that are done."""
    frames: int
    segments_done: int
    segments: int


@dataclass(frozen=True)
class _First:
    index: int


@dataclass(frozen=True)
class _Claim:
    cause: str
    """Digest of the event that joins, also when it is delivered again."""
    lost: tuple[int, ...] = ()
    """Segments whose clips that event found gone: the event of the last of them joins in its place."""


def open_plan(data: bytes) -> Plan:
    """Raises ValueError."""
    return records.read(Plan, records.loads(data))


def kept_plan(storage: TenantStore) -> Plan | None:
    """The plan that an earlier delivery has left behind, its clips all stored; None where there is none to be read."""
    with suppress(ObjectNotFoundError, ValueError):
        return open_plan(storage.read(keys.job(storage.tenant, storage.job, SPLIT, PLAN))[0])
    return None


def closed_plan(plan: Plan) -> bytes:
    return records.dumps(records.write(plan))


def asked_first(plan: Plan) -> range:
    """Segments that are asked for at once."""
    return range(min(1 if plan.alone else plan.window, len(plan.parts)))


def follow(plan: Plan, index: int, first: int | None) -> range:
    """Segments that are asked for as `index` is done: each by one other and always the same.

    Where it must be known before who is in the video (`plan.alone`), segments go one by one up to `first`, the first
    that shows someone whom the job means; None: no such segment is done.
    """
    last = len(plan.parts)
    if plan.alone and (first is None or index < first):
        wanted = range(index + 1, index + 2)
    elif plan.alone and index == first:
        wanted = range(index + 1, index + 1 + plan.window)
    else:
        wanted = range(index + plan.window, index + plan.window + 1)
    return range(min(wanted.start, last), min(wanted.stop, last))


def progress(store: ObjectStore, tenant: str, job: str, names: Iterable[str]) -> Progress | None:
    """How far the video is, from the names in the job's folder; None before it was divided."""
    with suppress(ObjectNotFoundError, ValueError):
        plan = open_plan(store.get(keys.job(tenant, job, SPLIT, PLAN))[0])
        folder = f"{ASSEMBLE}/{_CLIP}"
        done = _indices(name[len(folder) :] for name in names if name.startswith(folder))
        frames = sum(part.frames for index, part in enumerate(plan.parts) if index in done)
        return Progress(frames, plan.facts.frames, len(done), len(plan.parts))
    return None


def _indices(names: Iterable[str]) -> frozenset[int]:
    """Of `<index>.json`."""
    return frozenset(int(number) for name in names if (number := name.removesuffix(".json")).isdecimal())


@dataclass(frozen=True)
class Film:
    """One job's records."""

    store: ObjectStore
    tenant: str
    job: str

    def take(self, plan: Plan, clip: Clip, cause: str) -> list[int] | None:
        """Put on record that a segment is done: the segments to ask for now, or None when `cause` joins the video."""
        self._note(plan, clip)
        done = self.done()
        if len(done) == len(plan.parts):
            return None if self._claim(clip.index, cause) else []
        claimed = self._claimant()
        if claimed == cause:  # it found clips gone, and a crash came before they were asked for
            return [index for index in range(len(plan.parts)) if index not in done]
        if claimed:  # all were asked for, and some are again
            return []
        return [one for one in follow(plan, clip.index, self._first(plan)) if one not in done]

    def _note(self, plan: Plan, clip: Clip) -> None:
        if plan.alone and clip.frames_swapped:
            self._create(_FIRST, _First(clip.index))
        done = Done(
            clip=clip.clip,
            frames=clip.frames,
            frames_swapped=clip.frames_swapped,
            frames_without_face=clip.frames_without_face,
            source_faces=clip.source_faces,
            warnings=clip.warnings,
            provider=clip.provider,
        )
        self._create(f"{_CLIP}{clip.index}.json", done)

    def done(self) -> frozenset[int]:
        """Segments that are done."""
        prefix, cursor, found = self._key(_CLIP + "x")[:-1], "", list[str]()
        while True:
            page = self.store.list(prefix, cursor=cursor)
            found += [entry.key[len(prefix) :] for entry in page.objects]
            if not (cursor := page.cursor):
                return _indices(found)

    def read(self, index: int) -> Done:
        """Raises ObjectNotFoundError for a segment that is not done."""
        return records.read(Done, records.loads(self.store.get(self._clip(index))[0]))

    def under_way(self, plan: Plan, done: frozenset[int]) -> list[int]:
        """Segments that were asked for and are not done."""
        first = self._first(plan)
        asked = {*asked_first(plan), *(index for one in done for index in follow(plan, one, first))}
        return sorted(asked - done)

    def _claim(self, index: int, cause: str) -> bool:
        """Whether the event `cause`, about the segment `index`, joins the video; asked when all segments are done."""
        mine = _Claim(cause)
        if self._create(_CLAIM, mine):
            return True
        found, etag = self._claimed()
        if found.cause == cause:
            return True
        if index not in found.lost:
            return False
        try:
            self.store.replace(self._key(_CLAIM), _bytes(mine), etag, content_type=JSON)
        except PreconditionFailedError:
            return False
        return True

    def _claimant(self) -> str:
        """The event that was about to join the video; empty where none was."""
        with suppress(ObjectNotFoundError):
            return self._claimed()[0].cause
        return ""

    def lose(self, indices: Iterable[int]) -> None:
        """These segments have no clips any more: none of them is done, and the event of the last one joins instead.

        For the event that has the claim. Raises BusyError when it was passed on meanwhile.
        """
        lost = tuple(indices)
        self._leave(lost)
        for index in lost:
            self.store.delete(self._clip(index))

    def pass_on(self, index: int) -> None:
        """Whoever was about to join the video has not been heard of: the next clip of this segment joins instead."""
        with suppress(ObjectNotFoundError, BusyError):
            self._leave((index,))

    def _leave(self, lost: tuple[int, ...]) -> None:
        claim, etag = self._claimed()
        try:
            left = _bytes(_Claim(claim.cause, lost))
            self.store.replace(self._key(_CLAIM), left, etag, content_type=JSON)
        except PreconditionFailedError:
            raise BusyError from None

    def _first(self, plan: Plan) -> int | None:
        """As in `follow`, read only where it matters."""
        if plan.alone:
            with suppress(ObjectNotFoundError):
                return records.read(_First, records.loads(self.store.get(self._key(_FIRST))[0])).index
        return None

    def _create(self, name: str, record: object) -> bool:
        """Whether this was the first to write it."""
        try:
            self.store.create(self._key(name), _bytes(record), content_type=JSON)
        except PreconditionFailedError:
            return False
        return True

    def _claimed(self) -> tuple[_Claim, str]:
        data, info = self.store.get(self._key(_CLAIM))
        return records.read(_Claim, records.loads(data)), info.etag

    def _clip(self, index: int) -> str:
        return self._key(f"{_CLIP}{index}.json")

    def _key(self, name: str) -> str:
        return keys.job(self.tenant, self.job, ASSEMBLE, name)


def _bytes(record: object) -> bytes:
    return records.dumps(records.write(record))

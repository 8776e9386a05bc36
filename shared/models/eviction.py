"""Making room in a cache: what was left unfinished goes first, then the sets that nobody has used for longest.

Nothing that a process uses is touched, nor what was used within the last minute: a function takes over what its init
step has fetched a moment before. Knows the cache's folder and nothing of models.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shared.models import manifest
from shared.models.locks import locked_if_free
from shared.models.partial import RECORD, room
from shared.models.receiving import require_space
from shared.models.uses import Uses

FRESH = 60.0
"""Seconds."""


@dataclass(frozen=True)
class _Candidate:
    last: float
    size: int
    remove: Callable[[], bool]


@dataclass(frozen=True)
class Evictor:
    root: Path
    partials: Path
    locks: Path
    trash: Path
    uses: Uses

    def make_room(self, needed: int) -> None:
        """Until `needed` bytes are free. Raises CacheFullError, and removes nothing, when that cannot be."""
        free = shutil.disk_usage(self.root).free
        if free >= needed:
            return
        candidates = list(self._candidates())
        if free + sum(candidate.size for candidate in candidates) < needed:
            require_space(self.root, needed)
        for candidate in candidates:
            if shutil.disk_usage(self.root).free >= needed:
                return
            candidate.remove()
        require_space(self.root, needed)

    def one(self) -> bool:
        """Remove what is missed least; False when there is nothing that may go."""
        return any(candidate.remove() for candidate in self._candidates())

    def remove(self, name: str) -> bool:
        """Remove a set; False when it is in use or gone."""
        with self.uses.unused(name) as free:
            return free and self.drop(name)

    def drop(self, name: str) -> bool:
        """Out of sight in one step, then gone: nobody sees half of it. False when there was nothing."""
        self.trash.mkdir(parents=True, exist_ok=True)
        away = self.trash / uuid.uuid4().hex
        with suppress(OSError):
            (self.root / name).rename(away)
        existed = away.exists()
        shutil.rmtree(away, ignore_errors=True)
        return existed

    def _candidates(self) -> Iterator[_Candidate]:
        """In the order in which they go."""
        for path in self.partials.glob(f"*{RECORD}"):
            data = path.with_name(path.name.removesuffix(RECORD))
            yield _Candidate(0.0, room(data), lambda data=data: self._drop_partial(data))  # type: ignore[misc]
        limit, sets = time.time() - FRESH, []
        for folder in self.root.glob("[!.]*"):
            entries = manifest.read(folder)
            last = self.uses.last(folder.name) or _modified(folder / manifest.NAME)
            if entries is not None and last < limit:
                size = sum(entry.size for entry in entries.values())
                sets.append(_Candidate(last, size, lambda name=folder.name: self.remove(name)))  # type: ignore[misc]
        yield from sorted(sets, key=lambda candidate: candidate.last)

    def _drop_partial(self, data: Path) -> bool:
        with locked_if_free(self.locks / data.name) as free:
            if free:
                data.with_name(data.name + RECORD).unlink(missing_ok=True)
                data.unlink(missing_ok=True)
            return free


def _modified(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return time.time()

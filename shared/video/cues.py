"""Subtitles for a track that shows one text at a time, which is MP4's: what is on screen together becomes one text.

FFmpeg's writer would move a line that overlaps another behind it. Knows the standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

_MOST = 32
"""Lines on screen at once; of more, the oldest go. Nobody could read them."""
_LONGEST = 65535
"""Bytes of a text (3GPP TS 26.245)."""


class Cue(NamedTuple):
    start: int
    end: int
    """Both in ticks; a line of unknown length ends where it begins, and is shown until the next."""
    words: bytes


@dataclass
class Cues:
    """Lines in the order of their begins become texts, none of which overlaps another."""

    _shown: list[Cue] = field(default_factory=list)
    _at: int | None = None
    """Up to where all is said."""

    def take(self, cue: Cue) -> list[Cue]:
        """What is settled, now that nothing will begin before this line. One that comes too late begins where the
        last text ended."""
        start = cue.start if self._at is None else max(cue.start, self._at)
        found = self._until(start)
        self._at = start
        if cue.words:
            self._shown = [*self._shown[1 - _MOST :], cue._replace(start=start)]
        return found

    def rest(self) -> list[Cue]:
        """After the last line."""
        return self._until(None)

    def _until(self, stop: int | None) -> list[Cue]:
        found: list[Cue] = []
        while self._shown and self._at is not None and (stop is None or self._at < stop):
            ends = [cue.end if cue.end > cue.start else stop for cue in self._shown]
            known = [end for end in (*ends, stop) if end is not None]
            end = max(min(known), self._at) if known else self._at
            if end > self._at or stop is None:
                words = b"\n".join(cue.words for cue in self._shown)
                found.append(Cue(self._at, end, words[:_LONGEST]))
            self._shown = [
                cue for cue, ends_at in zip(self._shown, ends, strict=True) if ends_at is not None and ends_at > end
            ]
            self._at = end
        return found

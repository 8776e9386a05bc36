"""Boxes of ISO 14496-12 (MP4, QuickTime) and the tables in them, read without a demuxer.

Knows the file by its descriptor and the standard library.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from shared.video.source import Source
from shared.video.walking import counted

MOST = 2**22
"""Entries of one table that are read: four bytes each, so that hostile ones take no memory."""


class TooLongError(Exception):
    """A table that is not read: nobody can say whether it holds."""


@dataclass(frozen=True)
class Box:
    source: Source
    name: bytes
    start: int
    """Place of its first byte in the file."""
    begin: int
    """Of its first byte behind the head."""
    end: int

    def __iter__(self) -> Iterator[Box]:
        return boxes(self.source, self.begin, self.end)

    def first(self, *path: bytes) -> Box | None:
        """The first box within by its names, each within the one before."""
        found: Box | None = self
        for name in path:
            found = next((box for box in found if box.name == name), None) if found is not None else None
        return found

    @property
    def version(self) -> int:
        return self.number(0, 1)

    @property
    def flags(self) -> int:
        return self.number(1, 3)

    def number(self, at: int, width: int) -> int:
        """Unsigned, `at` bytes behind the head; 0 where the box ends before."""
        return int.from_bytes(self.source.at(self.begin + at, min(width, max(0, self.end - self.begin - at))), "big")

    def long(self, at: int) -> int:
        """As `number` where a version of 1 makes numbers longer: eight bytes, else four."""
        return self.number(at, 8 if self.version == 1 else 4)

    def table(self, at: int, count: int) -> array[int]:
        """`count` numbers of four bytes, or as many as there are. Raises TooLongError where they are too many."""
        count = min(count, max(0, self.end - self.begin - at) // 4)
        if count > MOST:
            raise TooLongError
        values = array("I", self.source.at(self.begin + at, 4 * count))
        if sys.byteorder == "little":
            values.byteswap()
        return values


def head(source: Source, place: int) -> tuple[bytes, int, int]:
    """Name and size of a box as its head says them, and how long that is; size 0: up to the end. ISO 14496-12, 4.2."""
    found = source.at(place, 16)
    size = int.from_bytes(found[:4], "big")
    return (found[4:8], int.from_bytes(found[8:16], "big"), 16) if size == 1 else (found[4:8], size, 8)


def boxes(source: Source, begin: int, end: int) -> Iterator[Box]:
    """From one place to another, up to the first that does not end there. Raises MediaCorruptError for too many."""
    count = 0
    while begin + 8 <= end:
        count = counted(count)
        name, size, width = head(source, begin)
        size = size or end - begin
        if size < width or begin + size > end:
            return
        yield Box(source, name, begin, begin + width, begin + size)
        begin += size

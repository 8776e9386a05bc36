"""Elements of EBML (RFC 8794), of which Matroska is made: their names, sizes and places. Knows the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shared.video.source import Source


@dataclass(frozen=True)
class Element:
    name: int
    size: int | None
    """Of its data; None where that is not known."""
    place: int
    """Where they begin."""
    begin: bytes
    """Of what follows, four bytes at least where there are so many."""

    def number(self, source: Source) -> int:
        """Of one that holds an unsigned number."""
        return int.from_bytes(source.at(self.place, min(self.size or 0, 8)), "big")


def element(source: Source, place: int) -> Element:
    return head(source.at(place, 16), place)


def within(source: Source, place: int, end: int) -> Iterator[Element]:
    """Up to the first that does not end there."""
    while place < end:
        found = element(source, place)
        if found.size is None or found.place + found.size > end:
            return
        yield found
        place = found.place + found.size


def head(data: bytes, place: int) -> Element:
    length = _width(data, 0)
    size, width = vint(data, length)
    return Element(int.from_bytes(data[:length], "big"), size, place + length + width, data[length + width :])


def vint(data: bytes, at: int) -> tuple[int | None, int]:
    """A size and how many bytes it took; None where all its bits are set: unknown."""
    width = _width(data, at)
    value = int.from_bytes(data[at : at + width], "big") & ((1 << 7 * width) - 1)
    return (None if value == (1 << 7 * width) - 1 else value), width


def _width(data: bytes, at: int) -> int:
    first = data[at] if at < len(data) else 0
    return max(9 - first.bit_length(), 1) if first else 8

"""Containers walked from block to block, without a demuxer: does every block end in the file, is the index there.

Data is stepped over, never unpacked. Knows the standard library and the error tree.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.video import animations
from shared.video.source import Source
from shared.video.walking import Walk, counted

_SEGMENT, _CLUSTER = 0x18538067, 0x1F43B675
_TOP = frozenset(
    (
        _CLUSTER,
        0x1A45DFA3,
        0x114D9B74,
        0x1549A966,
        0x1654AE6B,
        0x1C53BB6B,
        0x1941A469,
        0x1043A770,
        0x1254C367,
        0xEC,
        0xBF,
    )
)
"""Of a Segment (RFC 9559, 5.1): clusters, headers, lists of places, information, tracks, cues, attachments, chapters,
tags; and what may stand anywhere: Void and CRC-32."""
_BLOCKS = frozenset((0xE7, 0xA3, 0xA0, 0xAB, 0xA7, 0x5854, 0xAF, 0xEC, 0xBF))
"""Of a Cluster (5.1.3), old kinds too."""
_SIMPLE, _TRACKS, _ENTRY, _NUMBER = 0xA3, 0x1654AE6B, 0xAE, 0xD7
_MOST_TRACKS = 2**20
"""Bytes of them that are looked at."""


def walked(container: str, source: Source) -> Walk:
    """`container` as in Facts. Raises MediaCorruptError for what has blocks without end."""
    match container:
        case "mp4" | "mov":
            return _boxes(source)
        case "mkv" | "webm":
            return _elements(source)
    return animations.walked(container, source)


def _boxes(source: Source) -> Walk:
    """ISO 14496-12, 4.2."""
    place, count, indexed = 0, 0, False
    while place + 8 <= source.size:
        count = counted(count)
        head = source.at(place, 16)
        size = int.from_bytes(head[:4], "big")
        if size == 1:
            size = int.from_bytes(head[8:16], "big")
        if size and (size < 8 or place + size > source.size):
            return Walk(False, indexed)
        indexed |= head[4:8] in (b"moov", b"moof")
        if size == 0:  # up to the end
            return Walk(True, indexed)
        place += size
    return Walk(True, indexed)


@dataclass(frozen=True)
class _Element:
    name: int
    size: int | None
    """Of its data; None where that is not known."""
    place: int
    """Where they begin."""
    begin: bytes
    """Of what follows, four bytes at least where there are so many."""


def _elements(source: Source) -> Walk:
    """RFC 8794: whether the Segment and all in it end within the file, and its clusters hold what they may."""
    place, count, segment, broken, tracks = 0, 0, False, False, set[int]()
    while place < source.size:
        count = counted(count)
        found = _element(source, place)
        place = found.place
        if found.size is None:  # not known: its children follow
            if segment and found.name != _CLUSTER:
                return Walk(True, broken=broken)
        elif place + found.size > source.size:
            return Walk(False, broken=broken)
        if found.name == _SEGMENT:
            segment = True
        elif found.size is not None:
            if found.name == _TRACKS:
                tracks = _numbers(source.at(place, min(found.size, _MOST_TRACKS)))
            elif found.name == _CLUSTER:
                count, strange = _blocks(source, place, place + found.size, count, tracks)
                broken |= strange
            broken |= segment and found.name not in _TOP | _BLOCKS
            place += found.size
    return Walk(True, broken=broken)


def _blocks(source: Source, place: int, end: int, count: int, tracks: set[int]) -> tuple[int, bool]:
    """The number of elements so far, and whether the cluster up to `end` holds another than it may."""
    while place < end:
        count = counted(count)
        found = _element(source, place)
        if found.name not in _BLOCKS or found.size is None or found.place + found.size > end:
            return count, True
        if found.name == _SIMPLE and _vint(found.begin, 0)[0] not in tracks:
            return count, True
        place = found.place + found.size
    return count, False


def _numbers(tracks: bytes) -> set[int]:
    """Of all tracks: they stand in their entries as 0xD7."""
    found, place = set(), 0
    while place < len(tracks):
        one = _head(tracks[place : place + 16], place)
        place = one.place
        if one.name == _NUMBER:
            found.add(int.from_bytes(tracks[place : place + (one.size or 0)], "big"))
        if one.name != _ENTRY:
            place += one.size or 0
    return found


def _element(source: Source, place: int) -> _Element:
    return _head(source.at(place, 16), place)


def _head(head: bytes, place: int) -> _Element:
    length = _width(head, 0)
    size, width = _vint(head, length)
    return _Element(int.from_bytes(head[:length], "big"), size, place + length + width, head[length + width :])


def _width(head: bytes, at: int) -> int:
    first = head[at] if at < len(head) else 0
    return max(9 - first.bit_length(), 1) if first else 8


def _vint(head: bytes, at: int) -> tuple[int | None, int]:
    """A size and how many bytes it took; None where all its bits are set: unknown."""
    width = _width(head, at)
    value = int.from_bytes(head[at : at + width], "big") & ((1 << 7 * width) - 1)
    return (None if value == (1 << 7 * width) - 1 else value), width

"""Containers walked from block to block, without a demuxer: does every block end in the file, is the index there.

Data is stepped over, never unpacked. Knows the standard library and the error tree.
"""

from __future__ import annotations

from shared.video import animations
from shared.video.source import Source
from shared.video.walking import Walk, counted

_SEGMENT = 0x18538067


def walked(container: str, source: Source) -> Walk:
    """`container` as in Facts. Raises MediaCorruptError for what has blocks without end."""
    match container:
        case "mp4" | "mov":
            return _boxes(source)
        case "mkv" | "webm":
            return Walk(_elements(source))
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


def _elements(source: Source) -> bool:
    """RFC 8794: whether the Segment and all in it end within the file."""
    place, count, segment = 0, 0, False
    while place < source.size:
        count = counted(count)
        head = source.at(place, 16)
        length = _width(head, 0)
        name, (size, width) = int.from_bytes(head[:length], "big"), _vint(head, length)
        place += length + width
        if size is None:  # not known: its children follow
            if segment and name != 0x1F43B675:
                return True
        elif place + size > source.size:
            return False
        if name == _SEGMENT:
            segment = True
        elif size is not None:
            place += size
    return True


def _width(head: bytes, at: int) -> int:
    first = head[at] if at < len(head) else 0
    return max(9 - first.bit_length(), 1) if first else 8


def _vint(head: bytes, at: int) -> tuple[int | None, int]:
    """A size and how many bytes it took; None where all its bits are set: unknown."""
    width = _width(head, at)
    value = int.from_bytes(head[at : at + width], "big") & ((1 << 7 * width) - 1)
    return (None if value == (1 << 7 * width) - 1 else value), width

"""Containers walked from block to block, without a demuxer: does every block end in the file, is the index there.

Data is stepped over, never unpacked. Knows the standard library and the error tree.
"""

from __future__ import annotations

from shared.video import animations, matroska
from shared.video.boxes import head
from shared.video.source import Source
from shared.video.walking import Walk, counted


def walked(container: str, source: Source) -> Walk:
    """`container` as in Facts. Raises MediaCorruptError for what has blocks without end."""
    match container:
        case "mp4" | "mov":
            return _boxes(source)
        case "mkv" | "webm":
            return matroska.walked(source)
    return animations.walked(container, source)


_FILM = frozenset((b"moov", b"moof", b"mdat", b"styp", b"sidx", b"ssix", b"prft", b"emsg"))
"""Boxes of which nothing may be missing; what else breaks off, or is no box at all, was put behind the film by phones,
dashcams and taggers, and every player stops before it."""


def _boxes(source: Source) -> Walk:
    place, count, indexed, fragmented = 0, 0, False, False
    while place + 8 <= source.size:
        count = counted(count)
        name, size, _ = head(source, place)
        if size and (size < 8 or place + size > source.size):
            return Walk(indexed and not fragmented and name not in _FILM, indexed)
        indexed |= name in (b"moov", b"moof")
        fragmented = name == b"moof" or (fragmented and name != b"mfra")  # which stands behind the last
        if size == 0:  # up to the end
            return Walk(True, indexed)
        place += size
    return Walk(True, indexed)

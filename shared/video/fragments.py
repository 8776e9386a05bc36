"""What the fragments of an MP4 file hold, added to its tracks. ISO 14496-12, 8.8. Knows boxes and tracks."""

from __future__ import annotations

from shared.video.boxes import Box
from shared.video.tables import Track

_BASE, _DURATION, _SIZE, _OWN = 1, 8, 16, 0x20000
"""Of `tfhd`'s flags (8.8.7); the last: places count from the fragment's begin."""
_OFFSET, _FIRST = 1, 4
_FIELDS = (0x100, 0x200, 0x400, 0x800)
"""Of `trun`'s (8.8.8): duration, size, flags and lateness of each sample."""


def add(moof: Box, tracks: dict[int, Track]) -> None:
    """Raises TooLongError for runs that are too long to be read."""
    after = moof.start
    for traf in moof:
        tfhd = traf.first(b"tfhd") if traf.name == b"traf" else None
        track = tracks.get(tfhd.number(4, 4)) if tfhd is not None else None
        if tfhd is not None and track is not None:
            after = _fragment(traf, tfhd, track, moof.start, after)


def _fragment(traf: Box, tfhd: Box, track: Track, start: int, after: int) -> int:
    """`after`: where the data of the fragment's track before end, which is where this one's begin; now they end."""
    flags, at, found = tfhd.flags, 8, dict[int, int]()
    for bit, width in ((_BASE, 8), (2, 4), (_DURATION, 4), (_SIZE, 4)):
        if flags & bit:
            found[bit] = tfhd.number(at, width)
            at += width
    base = found.get(_BASE, start if flags & _OWN else after)
    place = base
    for trun in traf:
        if trun.name == b"trun":
            if trun.flags & _OFFSET:
                offset = trun.number(8, 4)
                place = base + (offset - 2**32 if offset >= 2**31 else offset)
            length = _run(trun, track, found.get(_DURATION, track.duration), found.get(_SIZE, track.size))
            track.extents.append((place, place + length))
            place += length
    return place


def _run(trun: Box, track: Track, duration: int, size: int) -> int:
    """Its bytes."""
    count, flags = trun.number(4, 4), trun.flags
    has = [bool(flags & bit) for bit in _FIELDS]
    at = 8 + 4 * bool(flags & _OFFSET) + 4 * bool(flags & _FIRST)
    rows, width = trun.table(at, count * sum(has)), sum(has)
    durations = sum(rows[0::width]) if has[0] else count * duration
    late = rows[width - 1 :: width] if has[3] else ()
    track.samples += count
    track.lasting += durations
    track.late = max(track.late, max((value for value in late if value < 2**31), default=0))
    return sum(rows[has[0] :: width]) if has[1] else count * size

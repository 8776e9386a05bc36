"""Whether an MP4 or QuickTime file holds what it says: as many samples, as long, and within its bytes.

Files are cut off, joined and mended by tools that put the boxes right and not what is in them; a demuxer then ends
early and says nothing. Tolerances are for what real writers round. Knows boxes and their tables.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from shared.video import fragments
from shared.video.boxes import Box, TooLongError, boxes
from shared.video.source import Source
from shared.video.tables import SOUND, UNKNOWN, VIDEO, Track, tracks

_FRAMES = 3
"""By so many frames a track may be shorter than said: writers guess how long the last one is shown."""
_LOOSE, _SHARE = 1.0, 0.01
"""Seconds, and of the length: the same where a film's length is said, or a sound's, which begins before its time and
ends in the middle of a packet."""
_IDLE = 1 / 8
"""Of all data: more that no track has, other than zeros, is a table cut short. Cameras leave gaps and thumbnails."""
_TOUCHED = 64
"""Bytes at the begin and the end of a gap that are looked at."""


def broken(source: Source) -> bool:
    """Whether something is missing that was promised. False where there is nothing to compare, or too much of it.

    Raises MediaCorruptError for boxes without end.
    """
    top = list(boxes(source, 0, source.size))
    moov = next((box for box in top if box.name == b"moov"), None)
    if moov is None:
        return False
    try:
        found = tracks(moov)
        for box in top:
            if box.name == b"moof":
                fragments.add(box, found)
    except TooLongError:
        return False
    if not found:  # an index that is packed (`cmov`), of another file's tracks, or of none
        return False
    film = [track for track in found.values() if track.kind in (VIDEO, SOUND)]
    scale = _scale(moov)
    return (
        any(_missing(track, scale) or _outside(track, source.size) for track in film)
        or _ends_early(moov, [*found.values()], scale)
        or _indexed_further(top, found)
        or _idle(source, top, [*found.values()])
    )


def _scale(moov: Box) -> int:
    mvhd = moov.first(b"mvhd")
    return (mvhd.number(20 if mvhd.version == 1 else 12, 4) if mvhd is not None else 0) or 1


def _missing(track: Track, scale: int) -> bool:
    """Whether a track's tables disagree, or say that it is longer than its samples; `scale`: ticks of the film."""
    if not track.samples and not track.promised:
        return False
    slack = _slack(track)
    ends = [begin / track.scale + length / scale for length, begin in track.edits if begin >= 0]
    said = [*ends, *(track.media / track.scale for _ in [0] if track.media not in UNKNOWN)]
    shown = track.shown / scale if track.shown not in UNKNOWN else 0.0
    return (
        track.promised > 1
        or max(said, default=0.0) > track.held + slack
        or shown > max(_shown(track, scale) + slack, _loosely(_shown(track, scale)))
    )


def _slack(track: Track) -> float:
    if track.kind == SOUND:
        return _loosely(track.held) - track.held
    return _FRAMES * track.frame + track.late / track.scale


def _shown(track: Track, scale: int) -> float:
    """Seconds from the film's begin to the track's end; an edit without a length goes on to the end."""
    if not track.edits:
        return track.held
    rest = any(begin >= 0 and not length for length, begin in track.edits)
    return sum(length for length, _ in track.edits) / scale + (track.held if rest else 0.0)


def _loosely(seconds: float) -> float:
    return seconds * (1 + _SHARE) + _LOOSE


def _outside(track: Track, size: int) -> bool:
    return any(end > size for _, end in track.extents)


def _ends_early(moov: Box, found: Sequence[Track], scale: int) -> bool:
    """Whether the film's own length, or that of all its fragments, is more than any track has."""
    mvhd, mehd = moov.first(b"mvhd"), moov.first(b"mvex", b"mehd")
    said = [mvhd.long(24 if mvhd.version == 1 else 16)] if mvhd is not None else []
    said += [mehd.long(4)] if mehd is not None else []
    longest = max((max(_shown(track, scale), track.held) for track in found), default=0.0)
    slack = max((_slack(track) for track in found if track.kind == VIDEO), default=0.0)
    return any(length / scale > max(longest + slack, _loosely(longest)) for length in said if length not in UNKNOWN)


def _indexed_further(top: Sequence[Box], found: Mapping[int, Track]) -> bool:
    """Whether segment indices (8.16.3) tell of more than the fragments have.

    Some indices are of further indices, some of segments that have their own, so times count once.
    """
    told: dict[int, list[tuple[int, int]]] = {}
    scales: dict[int, int] = {}
    for box in (box for box in top if box.name == b"sidx"):
        number, at = box.number(4, 4), 28 if box.version == 1 else 20
        scales[number] = box.number(8, 4) or 1
        begin = box.long(12)
        end = begin + sum(box.table(at + 4, 3 * box.number(at + 2, 2))[1::3])
        told.setdefault(number, []).append((begin, end))
    return any(
        sum(end - begin for begin, end in _united(spans)) / scales[number] > found[number].held + _slack(found[number])
        for number, spans in told.items()
        if number in found
    )


def _idle(source: Source, top: Sequence[Box], found: Sequence[Track]) -> bool:
    """Whether much data belongs to no track."""
    if not all(track.exact for track in found):
        return False
    held = _united(extent for track in found for extent in track.extents)
    ends = [end for _, end in held]
    whole = idle = 0
    for box in (box for box in top if box.name == b"mdat"):
        whole, place, number = whole + box.end - box.begin, box.begin, bisect_right(ends, box.begin)
        while place < box.end:
            begin, end = held[number] if number < len(held) else (box.end, box.end)
            if place < (begin := min(begin, box.end)) and _filled(source, place, begin):
                idle += begin - place
            place, number = max(end, begin), number + 1
    return idle > whole * _IDLE


def _united(extents: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """In their order, none touching another."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(extents):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        elif begin < end:
            found.append((begin, end))
    return found


def _filled(source: Source, begin: int, end: int) -> bool:
    """Whether a gap holds more than zeros, by its begin and its end."""
    size = min(_TOUCHED, end - begin)
    return any(source.at(begin, size)) or any(source.at(end - size, size))

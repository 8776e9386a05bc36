"""Matroska and WebM walked from element to element: do all end in the file, and do blocks go on as long as it says.

Knows EBML and the error tree.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from shared.video.ebml import Element, element, head, vint, within
from shared.video.source import Source
from shared.video.walking import Walk, counted

_SEGMENT, _CLUSTER, _SEEK_HEAD, _INFO, _TRACKS = 0x18538067, 0x1F43B675, 0x114D9B74, 0x1549A966, 0x1654AE6B
_TOP = frozenset(
    (
        *(_CLUSTER, 0x1A45DFA3, _SEEK_HEAD, _INFO, _TRACKS),
        *(0x1C53BB6B, 0x1941A469, 0x1043A770, 0x1254C367, 0xEC, 0xBF),
    )
)
"""Of a Segment (RFC 9559, 5.1): clusters, headers, lists of places, information, tracks, cues, attachments, chapters,
tags; and what may stand anywhere: Void and CRC-32."""
_BLOCKS = frozenset((0xE7, 0xA3, 0xA0, 0xAB, 0xA7, 0x5854, 0xAF, 0xEC, 0xBF))
"""Of a Cluster (5.1.3), old kinds too."""
_TIME, _SIMPLE, _GROUP, _BLOCK, _LASTING = 0xE7, 0xA3, 0xA0, 0xA1, 0x9B
_ENTRY, _NUMBER, _KIND, _DEFAULT = 0xAE, 0xD7, 0x83, 0x23E383
_OWN = frozenset((_NUMBER, _KIND, _DEFAULT))
_SCALE, _DURATION = 0x2AD7B1, 0x4489
_PLACE = 0x53AC
_MOST_TRACKS = 2**20
"""Bytes of them that are looked at."""
_LOOSE, _STEPS = 0.5, 2
"""Seconds, and the longest steps between blocks, by which the last block may begin before the end: writers put sound
together, and only some say how long a picture is shown."""
_SHOWN = frozenset((1, 2))
"""Pictures and sound, by the number of their kind."""


@dataclass
class _Clock:
    """When the blocks that were walked over are shown, in ticks of the file."""

    tracks: dict[int, int] = field(default_factory=dict)
    """Kind by number."""
    lasting: dict[int, int] = field(default_factory=dict)
    """Nanoseconds that each block of a track is shown for, where it says so."""
    scale: int = 1_000_000
    """Nanoseconds of a tick."""
    said: float = 0.0
    """How long the file says that it is."""
    furthest: int = 0
    """The last byte that the file says it has."""
    end: int = 0
    """Of the last block."""
    step: int = 0
    """The longest between two of one track."""
    stepped: bool = False
    """Whether any track has two, so that something tells how long the last one may last."""
    sought: bool = False
    """Whether there is a list of places. Browsers write none while they record, and whoever mends such a recording puts
    sizes into it, and a length by the clock on the wall: past the last picture of a still screen."""
    _cluster: int = 0
    _last: dict[int, int] = field(default_factory=dict)

    def take(self, source: Source, found: Element) -> None:
        if found.name == _TIME:
            self._cluster = found.number(source)
        elif found.name == _SIMPLE:
            self._block(found, 0)
        elif found.name == _GROUP:
            inside = {one.name: one for one in within(source, found.place, found.place + (found.size or 0))}
            if (block := inside.get(_BLOCK)) is not None:
                self._block(block, inside[_LASTING].number(source) if _LASTING in inside else 0)

    def _block(self, found: Element, lasting: int) -> None:
        track, width = vint(found.begin, 0)
        at = self._cluster + int.from_bytes(found.begin[width : width + 2], "big", signed=True)
        self.end = max(self.end, at + (lasting or self.lasting.get(track or 0, 0) // self.scale))
        if track is not None and self.tracks.get(track) in _SHOWN:
            self.stepped |= track in self._last
            self.step = max(self.step, at - self._last.get(track, at))
            self._last[track] = at

    def info(self, source: Source, found: Element) -> None:
        for one in within(source, found.place, found.place + (found.size or 0)):
            if one.name == _SCALE:
                self.scale = one.number(source) or self.scale
            elif one.name == _DURATION and one.size in (4, 8):
                (self.said,) = struct.unpack(">f" if one.size == 4 else ">d", source.at(one.place, one.size))

    def seek(self, source: Source, found: Element, segment: int) -> None:
        self.sought = True
        for entry in within(source, found.place, found.place + min(found.size or 0, _MOST_TRACKS)):
            for one in within(source, entry.place, entry.place + (entry.size or 0)):
                if one.name == _PLACE:
                    self.furthest = max(self.furthest, segment + one.number(source))

    def stops_early(self, size: int) -> bool:
        loose = _LOOSE * 1e9 / self.scale + _STEPS * self.step
        return (self.stepped and self.sought and self.said > self.end + loose) or self.furthest >= max(size, 1)


def walked(source: Source) -> Walk:
    """Whether the Segment and all in it end within the file, and its clusters hold what they may."""
    place, count, segment, broken, clock = 0, 0, 0, False, _Clock()
    end: int | None = None
    while place < source.size:
        count = counted(count)
        found = element(source, place)
        if end is not None and place >= end and found.name not in _TOP:
            break  # put behind the film, and read by nobody
        if segment and end is None and _begun(found, source):
            break
        place = found.place
        if found.size is None:  # not known: its children follow
            if segment and found.name != _CLUSTER:
                break
        elif place + found.size > source.size:
            return Walk(False, broken=broken)
        if found.name == _SEGMENT:
            segment, end = place, None if found.size is None else place + found.size
        elif found.size is not None:
            if found.name == _CLUSTER:
                count, strange = _blocks(source, place, place + found.size, count, clock)
                broken |= strange
            else:
                _note(source, found, clock, segment)
            broken |= bool(segment) and found.name not in _TOP | _BLOCKS
            place += found.size
    return Walk(True, broken=broken, short=clock.stops_early(source.size))


def _note(source: Source, found: Element, clock: _Clock, segment: int) -> None:
    if found.name == _TRACKS:
        clock.tracks, clock.lasting = _tracks(source.at(found.place, min(found.size or 0, _MOST_TRACKS)))
    elif found.name == _INFO:
        clock.info(source, found)
    elif found.name == _SEEK_HEAD:
        clock.seek(source, found, segment)
    else:
        clock.take(source, found)


def _blocks(source: Source, place: int, end: int, count: int, clock: _Clock) -> tuple[int, bool]:
    """The number of elements so far, and whether the cluster up to `end` holds another than it may."""
    while place < end:
        count = counted(count)
        found = element(source, place)
        if _begun(found, source):
            break
        if found.name == _CLUSTER:  # fix-webm-duration gives the first cluster the size of all; demuxers go on with it
            place = found.place
            continue
        if found.name not in _BLOCKS or found.size is None or found.place + found.size > end:
            return count, True
        if found.name == _SIMPLE and vint(found.begin, 0)[0] not in clock.tracks:
            return count, True
        clock.take(source, found)
        place = found.place + found.size
    return count, False


def _begun(found: Element, source: Source) -> bool:
    """Whether the file ends within an element's head: browsers hand out recordings piece by piece, each with the first
    byte of what the next one goes on with."""
    return found.place > source.size


def _tracks(data: bytes) -> tuple[dict[int, int], dict[int, int]]:
    """Kinds of all tracks by their numbers, which stand in their entries, and how long their blocks last."""
    found, lasting, place, number = dict[int, int](), dict[int, int](), 0, 0
    while place < len(data):
        one = head(data[place : place + 16], place)
        place = one.place
        value = int.from_bytes(data[place : place + (one.size or 0)], "big") if one.name in _OWN else 0
        if one.name == _NUMBER:
            number = value
            found[number] = found.get(number, 0)
        elif one.name == _KIND and number:
            found[number] = value
        elif one.name == _DEFAULT:
            lasting[number] = value
        if one.name != _ENTRY:
            place += one.size or 0
    return found, lasting

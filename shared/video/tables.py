"""What an MP4's or QuickTime file's tables say of each track: how long it is, how many samples it has, where they lie.

Knows boxes. ISO 14496-12, by its paragraphs.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, islice

from shared.video.boxes import MOST, Box, TooLongError

VIDEO, SOUND = b"vide", b"soun"
UNKNOWN = frozenset((0, 2**32 - 1, 2**64 - 1))
"""Lengths that say nothing."""


@dataclass
class Track:
    kind: bytes
    """Of `hdlr` (8.4.3)."""
    scale: int = 1
    """Ticks a second, of all lengths but `shown` and `edits`."""
    media: int = 0
    """What `mdhd` (8.4.2) says that it lasts."""
    shown: int = 0
    """What `tkhd` (8.3.2) says, in ticks of the film."""
    edits: list[tuple[int, int]] = field(default_factory=list)
    """Length in ticks of the film and begin in the track's own; -1: nothing is shown. At the usual speed only."""
    samples: int = 0
    lasting: int = 0
    """Of all samples together, by `stts` (8.6.1.2) and fragments."""
    late: int = 0
    """The most by which one is shown after it is decoded (`ctts`, 8.6.1.3)."""
    promised: int = 0
    """Samples that one of the tables has and another has not."""
    extents: list[tuple[int, int]] = field(default_factory=list)
    """Bytes of the file that hold its samples."""
    exact: bool = True
    """Whether the extents are all that it holds: old QuickTime counts bytes of sound in its own way."""
    size: int = 0
    duration: int = 0
    """Of a sample in a fragment that says nothing else (`trex`, 8.8.3)."""

    @property
    def held(self) -> float:
        """Seconds."""
        return self.lasting / self.scale

    @property
    def frame(self) -> float:
        """Mean seconds of a sample."""
        return self.held / max(self.samples, 1)


def tracks(moov: Box) -> dict[int, Track]:
    """By their numbers. Raises TooLongError for tables that are too long to be read."""
    found = {}
    for trak in moov:
        head, hdlr = trak.first(b"tkhd"), trak.first(b"mdia", b"hdlr")
        if trak.name == b"trak" and head is not None and hdlr is not None:
            one = found[head.number(20 if head.version == 1 else 12, 4)] = Track(hdlr.number(8, 4).to_bytes(4, "big"))
            one.shown = head.long(28 if head.version == 1 else 20)
            _lengths(one, trak)
            if (stbl := trak.first(b"mdia", b"minf", b"stbl")) is not None:
                _samples(one, stbl)
    for trex in moov.first(b"mvex") or ():
        if trex.name == b"trex" and (own := found.get(trex.number(4, 4))) is not None:
            own.duration, own.size = trex.number(12, 4), trex.number(16, 4)
    return found


def _lengths(track: Track, trak: Box) -> None:
    if (mdhd := trak.first(b"mdia", b"mdhd")) is not None:
        at = 20 if mdhd.version == 1 else 12
        track.scale, track.media = mdhd.number(at, 4) or 1, mdhd.long(at + 4)
    if (elst := trak.first(b"edts", b"elst")) is not None:
        width = 8 if elst.version == 1 else 4
        for number in range(min(elst.number(4, 4), (elst.end - elst.begin - 8) // (2 * width + 4))):
            at = 8 + number * (2 * width + 4)
            begin, speed = elst.number(at + width, width), elst.number(at + 2 * width, 2)
            if speed == 1:
                track.edits.append((elst.number(at, width), -1 if begin == (1 << 8 * width) - 1 else begin))


def _samples(track: Track, stbl: Box) -> None:
    tables = {box.name: box for box in stbl}
    stsz, stts, ctts = tables.get(b"stsz", tables.get(b"stz2")), tables.get(b"stts"), tables.get(b"ctts")
    if stsz is None or stts is None:
        track.exact = False
        return
    count, size = stsz.number(8, 4), 0 if stsz.name == b"stz2" else stsz.number(4, 4)
    sizes = array("I") if size else _sizes(stsz, count)
    deltas = stts.table(8, 2 * stts.number(4, 4))
    lasting = [(deltas[at], deltas[at + 1]) for at in range(0, len(deltas) - 1, 2)]
    track.samples = count if size else len(sizes)
    track.lasting = sum(number * delta for number, delta in lasting)
    track.exact = size != 1
    if ctts is not None:
        offsets = ctts.table(8, 2 * ctts.number(4, 4))[1::2]
        track.late = max((offset for offset in offsets if offset < 2**31), default=0)
    placed, least = _place(track, tables, array("Q", [0, *accumulate(sizes)]), size)
    timed = sum(number for number, _ in lasting)
    track.promised = max(count, timed, least) - min(track.samples, timed, placed)


def _sizes(box: Box, count: int) -> array[int]:
    """Of each sample; in a compact table (`stz2`, 8.7.3.3) of 4, 8 or 16 bits. Raises TooLongError."""
    if box.name == b"stsz":
        return box.table(12, count)
    bits = box.number(7, 1)
    if bits not in (4, 8, 16) or count > MOST:
        raise TooLongError
    data = box.source.at(box.begin + 12, min(-(-count * bits // 8), max(0, box.end - box.begin - 12)))
    if bits == 16:
        return array("I", (high << 8 | low for high, low in zip(data[::2], data[1::2], strict=False)))
    halves = (half for byte in data for half in (byte >> 4, byte & 15))
    return array("I", islice(halves, count) if bits == 4 else data)


def _place(track: Track, tables: dict[bytes, Box], ends: array[int], size: int) -> tuple[int, int]:
    """Note the extents; the samples for which the chunks have room, and how many they must hold at least."""
    number = last = 0
    for place, held in _chunks(tables):
        first, number, last = number, number + held, held
        low, high = min(first, track.samples), min(number, track.samples)
        length = (high - low) * size if size else ends[high] - ends[low]
        track.extents.append((place, place + length))
    return number, max(number - last + 1, 0) if last else 0


def _chunks(tables: dict[bytes, Box]) -> Iterator[tuple[int, int]]:
    """The place of each chunk and the number of its samples (8.7.4, 8.7.5)."""
    long = tables.get(b"co64")
    stco, stsc = long or tables.get(b"stco"), tables.get(b"stsc")
    if stco is None or stsc is None:
        return
    count = stco.number(4, 4)
    places = stco.table(8, 2 * count if long else count)
    runs = stsc.table(8, 3 * stsc.number(4, 4))
    run = 0
    for chunk in range(len(places) // 2 if long else len(places)):
        while run + 3 < len(runs) and runs[run + 3] <= chunk + 1:
            run += 3
        place = places[2 * chunk] << 32 | places[2 * chunk + 1] if long else places[chunk]
        yield place, runs[run + 1] if run + 1 < len(runs) else 0

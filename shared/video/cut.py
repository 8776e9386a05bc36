"""A video divided at key frames without being decoded: clips that can be worked on apart.

A clip holds whole groups of pictures, as they are, and before them the group before, from which filters get their past
and open groups the pictures that they lean on. Knows the packets and the facts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from av.container import OutputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from shared.rejections import MediaCorruptError
from shared.video import media
from shared.video.facts import Facts
from shared.video.groups import refreshes_slowly
from shared.video.parameters import repeated
from shared.video.times import decode_times, spread
from shared.video.units import lengthed

FEWEST = 12
"""Frames of a part: less is not worth an event of its own."""
_NEAR = 0.6
"""Of the length aimed at: from there on a key frame that came before its time, as encoders set them at a new scene, is
taken for the border instead of one that is nearer."""
_ANIMATIONS = ("gif", "webp", "png")
_LENGTHED = {"h264": "h264", "hevc": "h265"}
"""Codecs whose parameter sets may stand among the pictures."""


@dataclass(frozen=True)
class Piece:
    """A `shared.video.plan.Part` whose clip still lies in a file of this machine."""

    path: Path
    start: int
    end: int
    frames: int
    cut: bool


@dataclass(frozen=True)
class _Group:
    """Packets from one key frame to the next, in the order of decoding."""

    first: int
    last: int
    """Number of the packet behind the last one."""
    start: int
    """Ticks: the first of its pictures in time, which may lie before the key frame."""
    frames: int
    """Shown."""


def cut(path: Path, facts: Facts, folder: Path, seconds: float, fewest: int = FEWEST) -> Iterator[Piece]:
    """Clips of about `seconds` in `folder`, in the order of time, each as soon as it is whole; every frame is in one.

    A stream without further key frames is one part; so is an animated picture, whose piece is the file itself. Two
    clips at most are open at a time; nothing of the video stays in memory. Raises MediaCorruptError for a file that
    breaks off, unless the facts say so already, and for one whose packets have no times.
    """
    if facts.container in _ANIMATIONS:
        yield Piece(path, facts.start, facts.end, facts.frames, cut=True)
        return
    times, groups, end = _index(path, facts)
    borders = _borders(groups, facts, seconds, fewest)
    shift = max(0, -min(times))
    moved = array("q", (at + shift for at in times))
    spans = [(groups[max(a - 1, 0)].first, groups[b - 1].last) for a, b in pairwise(borders)]
    starts = [facts.start, *(groups[border].start for border in borders[1:-1]), end]
    clips = _clips(path, facts, folder, spans, moved)
    for number, clip in enumerate(clips):
        frames = sum(group.frames for group in groups[borders[number] : borders[number + 1]])
        yield Piece(clip, starts[number] + shift, starts[number + 1] + shift, frames, cut=number == 0)


def _index(path: Path, facts: Facts) -> tuple[array[int], list[_Group], int]:
    """When each packet is shown, the groups of pictures at whose begin the video may be divided, and its end.

    Of several pictures of one time each is a tick later than the one before.
    """
    times, shown, keys = array("q"), bytearray(), []
    with media.reading(path) as container:
        for packet in media.packets(container, media.video(container, facts.index), damage=bool(facts.damage)):
            at = packet.dts if packet.pts is None else packet.pts
            if at is None:
                raise MediaCorruptError("The video has pictures without a time.")
            if packet.is_keyframe and not refreshes_slowly(packet, facts.codec):
                keys.append(len(times))
            times.append(at)
            shown.append(facts.start <= at < facts.end and not packet.is_discard and not hidden(facts.codec, packet))
    if not any(shown):
        raise MediaCorruptError("The video has no picture that is shown.")
    spread(times)
    end = max(facts.end, 1 + max(at for at, is_shown in zip(times, shown, strict=True) if is_shown))
    return times, _groups(times, shown, keys), end


def hidden(codec: str, packet: Packet[VideoStream]) -> bool:
    """Whether a picture only helps others: VP8 says so in bit 4 of its first byte (RFC 6386, 9.1)."""
    return codec == "vp8" and not memoryview(packet)[0] & 0x10


def _groups(times: array[int], shown: bytearray, keys: list[int]) -> list[_Group]:
    """Where a group holds times of the one before, both are one: a border there would tear frames apart."""
    found: list[_Group] = []
    latest = 0
    for first, last in pairwise([0, *(key for key in keys if key), len(times)]):
        own = times[first:last]
        group = _Group(first, last, min(own), sum(shown[first:last]))
        if found and (group.start <= latest or not found[-1].frames):
            before = found.pop()
            group = _Group(before.first, last, min(before.start, group.start), before.frames + group.frames)
        latest = max(latest, *own) if found else max(own)
        found.append(group)
    return found


def _borders(groups: Sequence[_Group], facts: Facts, seconds: float, fewest: int) -> list[int]:
    """Numbers of the groups with which parts begin, and behind them the number of groups."""
    tick = Fraction(*facts.time_base)
    longest = max(group.last - group.first for group in groups)
    early = {n for n in range(1, len(groups)) if groups[n - 1].last - groups[n - 1].first < longest}
    borders, begin = [0], float(facts.start * tick)
    for number in range(1, len(groups)):
        length = float(groups[number].start * tick) - begin
        after = float((groups[number + 1].start if number + 1 < len(groups) else facts.end) * tick) - begin
        wanted = length >= seconds * _NEAR and number in early and not _early_ahead(after, seconds, number + 1, early)
        nearest = abs(length - seconds) <= abs(after - seconds)
        if (wanted or nearest) and _enough(groups, borders[-1], number, fewest):
            borders.append(number)
            begin += length
    return [*borders, len(groups)]


def _early_ahead(length: float, seconds: float, number: int, early: set[int]) -> bool:
    """Whether the next group too begins before its time, and nearer to the length aimed at."""
    return number in early and length <= seconds


def _enough(groups: Sequence[_Group], begin: int, end: int, fewest: int) -> bool:
    """Whether both sides of a border before group `end` have frames enough."""
    before = sum(group.frames for group in groups[begin:end])
    return before >= fewest and sum(group.frames for group in groups[end:]) >= fewest


def _clips(
    path: Path, facts: Facts, folder: Path, spans: Sequence[tuple[int, int]], times: array[int]
) -> Iterator[Path]:
    """Clips of the packets first..last of each span; spans overlap with the next one only."""
    with media.reading(path) as container:
        stream = media.video(container, facts.index)
        opened: list[_Clip] = []
        done, sets = 0, b""
        for number, held in enumerate(media.packets(container, stream, damage=bool(facts.damage))):
            sets = _sets(held, facts.codec, sets)
            packet = _led(held, sets) if sets and held.is_keyframe else held
            while len(opened) < len(spans) and spans[len(opened)][0] == number:
                opened.append(
                    _Clip(folder / f"part.{len(opened):05}.mkv", stream, spans[len(opened)], times, facts.codec)
                )
            for clip in opened[done:]:
                clip.take(packet, number)
            if number == spans[done][1] - 1:
                yield opened[done].close()
                done += 1


def _sets(packet: Packet[VideoStream], codec: str, before: bytes) -> bytes:
    """Parameter sets of a second description of the samples, which MP4 and QuickTime may have and Matroska may not."""
    if codec not in _LENGTHED or not packet.has_sidedata("new_extradata"):
        return before
    try:
        return lengthed(repeated(_LENGTHED[codec], bytes(packet.get_sidedata("new_extradata"))))
    except ValueError:
        return before  # nothing could be decoded by it either, or it is no encoder's


def _led(packet: Packet[VideoStream], sets: bytes) -> Packet[VideoStream]:
    """With parameter sets before its picture."""
    made: Packet[Any] = Packet(sets + bytes(packet))
    made.duration, made.is_keyframe = packet.duration, True
    return made


class _Clip:
    def __init__(self, path: Path, stream: VideoStream, span: tuple[int, int], times: array[int], codec: str) -> None:
        self._path, self._first, self._times, self._codec = path, span[0], times, codec
        self._decoded = decode_times(times[slice(*span)])
        self._out: OutputContainer = media.clip(path)
        self._stream = self._out.add_stream_from_template(stream, opaque=True)
        self._stream.time_base = media.CLOCK
        if media.transparent(stream):
            self._stream.codec_context.pix_fmt = "yuva420p"  # which makes the writer say so too

    def take(self, packet: Packet[VideoStream], number: int) -> None:
        packet.stream = self._stream
        packet.time_base = media.CLOCK
        first = number == self._first  # readers find nothing before a key frame, and the video may begin without one
        packet.is_keyframe = first or (packet.is_keyframe and not refreshes_slowly(packet, self._codec))
        packet.pts, packet.dts = self._times[number], self._decoded[number - self._first]
        self._out.mux(packet)

    def close(self) -> Path:
        self._out.close()
        return self._path

"""Clips become one video again: their pictures in order, and with them everything else that the source had.

Nothing is encoded here but sound that the container does not take. Knows packets, the plan and what is written.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from shared.video import encoders, media
from shared.video.beside import Beside, Transcode, language
from shared.video.choosing import Target
from shared.video.facts import Facts
from shared.video.faults import EncodeFailedError
from shared.video.parameters import units_of
from shared.video.plan import Plan
from shared.video.times import decode_times
from shared.video.units import lengthed

if TYPE_CHECKING:
    from av.container.core import Chapter

_SOURCE = {"h264": "h264", "h265": "hevc", "av1": "av1", "vp9": "vp9"}
_MOVIE_TICKS = "90000"
"""Ticks a second in which MP4 says when tracks begin; FFmpeg's own thousand would move sound by up to half of one."""


def join(
    target: Path,
    clips: Sequence[Path],
    plan: Plan,
    out: Path,
    choice: Target,
    *,
    transcode: Transcode,
) -> tuple[str, ...]:
    """Write `out` of the pictures of `clips`, one for each part, and of what the source `target` has beside them.

    `transcode` encodes sound anew that the container does not take: `shared.isolated.sound` for bytes from outside.

    Gives warnings: `audio_reencoded`, `audio_dropped`, `subtitles_dropped`, `subtitles_restyled`, `attachment_dropped`,
    `cover_dropped`, `video_track_dropped`. Raises EncodeFailedError for clips that do not hold what their parts say,
    MediaCorruptError for a source that breaks off though its facts do not say so.
    """
    facts = plan.facts
    found = _read(clips, plan)
    name = media.FORMATS[choice.container]
    try:
        with media.reading(target) as source, media.writing(out, name, _options(facts, choice)) as made:
            beside = Beside(target, made, choice.container, transcode)
            with closing(beside), media.reading(found.clips[0]) as first:
                pictures = _streams(source, first, beside, facts, choice)
                made.set_chapters([_chapter(chapter) for chapter in source.chapters()])
                video = _Pictures(pictures, plan, found, choice.codec).packets(found.clips)
                others = [beside.packets(source, damage=bool(facts.damage)), *beside.new_sound()]
                for _, packet in heapq.merge(video, *others, key=lambda pair: pair[0]):
                    made.mux(packet)
            return tuple(beside.warnings)
    except (av.error.FFmpegError, OSError) as error:
        raise EncodeFailedError("The video could not be joined.", context={"reason": str(error)[:200]}) from error


def _options(facts: Facts, choice: Target) -> dict[str, str]:
    """The index comes first, so that a player needs not fetch the end before it begins."""
    if choice.container not in ("mp4", "mov"):
        return {"cues_to_front": "1"}
    ticks = {"video_track_timescale": str(facts.time_base[1]), "movie_timescale": _MOVIE_TICKS}
    return {"movflags": "+faststart", **ticks}


@dataclass(frozen=True)
class _Read:
    """What a first look at the clips told."""

    times: array[int]
    """Ticks of all pictures in the order of decoding."""
    clips: tuple[Path, ...]
    """Those that hold pictures: of a part of which none can be decoded there is a clip without any."""
    records: tuple[bytes, ...]
    """What each of them says before its first packet."""


def _read(clips: Sequence[Path], plan: Plan) -> _Read:
    """Raises EncodeFailedError where a picture is too many, or missing from a video not known to be damaged."""
    times, filled, records = array("q"), list[Path](), list[bytes]()
    for path, part in zip(clips, plan.parts, strict=True):
        own: list[int] = []
        if media.is_filled(path):
            with media.reading(path) as clip:
                stream = media.video(clip)
                records.append(stream.codec_context.extradata or b"")
                own = [packet.pts for packet in media.packets(clip, stream) if packet.pts is not None]
            filled.append(path)
        fewer = len(own) < part.frames and not plan.facts.damage
        if fewer or len(own) > part.frames or any(not part.start <= at < part.end for at in own):
            raise EncodeFailedError(f"A clip holds {len(own)} pictures, not the {part.frames} of its part.")
        times.extend(own)
    if not times:
        raise EncodeFailedError("No clip holds a picture.")
    return _Read(times, tuple(filled), tuple(records))


def _streams(
    source: InputContainer, first: InputContainer, beside: Beside, facts: Facts, choice: Target
) -> VideoStream:
    """All streams in the source's order; the one of the pictures."""
    pictures: VideoStream | None = None
    for stream in source.streams:
        if stream.index == facts.index:
            pictures = _pictures(media.video(source, facts.index), media.video(first), beside.out, facts, choice)
            pictures.disposition = stream.disposition
            if stream.language:
                pictures.metadata["language"] = language(stream.language, choice.container)
        else:
            beside.add(stream)
    assert pictures is not None
    return pictures


def _pictures(
    source: VideoStream, clip: VideoStream, made: OutputContainer, facts: Facts, choice: Target
) -> VideoStream:
    """Of the same codec the source's stream is the model: with it comes what its container says of light and form."""
    same = _SOURCE[choice.codec] == facts.codec
    stream = made.add_stream_from_template(source if same else clip, opaque=True)
    context = stream.codec_context
    context.extradata = clip.codec_context.extradata
    context.width, context.height, context.pix_fmt = choice.width, choice.height, choice.pixel_format
    context.sample_aspect_ratio = Fraction(*facts.sample_aspect) if all(facts.sample_aspect) else None
    context.framerate, context.field_order = encoders.rate(facts), clip.codec_context.field_order
    encoders.paint(context, facts, choice)
    if choice.codec == "h265" and choice.container in ("mp4", "mov"):
        context.codec_tag = "hvc1"
    if not same and facts.rotation:
        stream.set_display_rotation(facts.rotation)
    stream.time_base = Fraction(*facts.time_base)
    return stream


def _chapter(chapter: Chapter) -> Chapter:
    titles = {name: text for name, text in chapter["metadata"].items() if name == "title"}
    return {**chapter, "metadata": titles}


class _Pictures:
    """The packets of the clips on their way into one stream."""

    def __init__(self, stream: VideoStream, plan: Plan, found: _Read, codec: str) -> None:
        self._stream = stream
        self._tick, self._shift = Fraction(*plan.facts.time_base), plan.parts[0].start - plan.facts.start
        self._shown, self._decoded = found.times, decode_times(found.times)
        self._ordered = array("q", sorted(found.times))
        self._ordered.append(max(plan.parts[-1].end, self._ordered[-1]))
        self._sets = _sets_before_keys(found.records, codec)

    def packets(self, clips: Sequence[Path]) -> Iterator[tuple[Fraction, Packet[Any]]]:
        """Second and packet, ready to be written."""
        place = 0
        for path, sets in zip(clips, self._sets, strict=True):
            with media.reading(path) as clip:
                for packet in media.packets(clip, media.video(clip)):
                    found = _with(sets, packet) if sets and packet.is_keyframe else packet
                    self._place(found, place)
                    place += 1
                    yield self._tick * (found.dts or 0), found

    def _place(self, packet: Packet[Any], place: int) -> None:
        at = self._shown[place]
        packet.stream, packet.time_base = self._stream, self._tick
        packet.pts, packet.dts = at - self._shift, self._decoded[place] - self._shift
        packet.duration = self._ordered[bisect_right(self._ordered, at, hi=len(self._ordered) - 1)] - at


def _sets_before_keys(records: Sequence[bytes], codec: str) -> list[bytes]:
    """Where clips were written by different encoders, each one's parameter sets go before all of its key frames."""
    if codec not in ("h264", "h265") or len(set(records)) == 1:
        return [b""] * len(records)
    return [lengthed(units_of(codec, record)) for record in records]


def _with(sets: bytes, packet: Packet[Any]) -> Packet[Any]:
    made: Packet[Any] = Packet(sets + bytes(packet))
    made.is_keyframe = True
    return made

"""What a video is, for bytes from outside: its container demultiplexed to the end, its first picture decoded.

Everything about time is counted from packets; what only a picture tells (which way up it is, whether it is interlaced)
is told by the first. Animated WebP has no demuxer: its blocks say all there is. Runs in the limited process only.
Knows PyAV and the containers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from av.container import InputContainer
from av.stream import Stream
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from shared.imaging.probe import Limits, check_size
from shared.rejections import (
    MediaCorruptError,
    MediaTruncatedError,
    NoVideoStreamError,
    UnsupportedMediaTypeError,
    VideoTooLongError,
)
from shared.video import opening, promises
from shared.video.counting import Span, span, too_many
from shared.video.decoders import UNDECODABLE, codec, decoder
from shared.video.facts import Colour, Facts, Other
from shared.video.formats import layout, planar
from shared.video.sniff import MP4, Kind, sniff
from shared.video.source import Source
from shared.video.walk import walked
from shared.video.walking import Walk

TRUNCATED, DAMAGED = "truncated", "frames_damaged"
_FIRST = 300
"""Packets that are looked at for a first picture."""
_JPEG = 2
"""FFmpeg's number for the full range."""
_MILLISECOND, _COMMON = (1, 1000), Fraction(25)
_MOST = 1_000_000
_KINDS = ("audio", "subtitle", "attachment")


@dataclass(frozen=True)
class Bounds:
    """What a tenant's policy lets in."""

    max_pixels: int
    max_seconds: int
    max_frames: int


def probe(source: Source, bounds: Bounds) -> Facts:
    """The facts of a video file.

    Raises MediaEmptyError, MediaTruncatedError and MediaCorruptError (where nothing of it can be read),
    UnsupportedMediaTypeError, NoVideoStreamError, ImageTooLargeError, ImageTooSmallError, VideoTooLongError.
    """
    kind = sniff(source)
    if kind is None:
        raise NoVideoStreamError("This is a still picture.")
    walk = walked(kind.name, source)
    if not walk.indexed:
        raise MediaTruncatedError("The index of the video is missing.")
    if kind.demuxer == MP4.demuxer and walk.complete:
        walk = replace(walk, short=promises.broken(source))
    facts = _webp(kind, walk, bounds) if not kind.demuxer else _film(source, kind, walk, bounds)
    if facts.seconds > bounds.max_seconds:
        context = {"seconds": round(facts.seconds, 3), "limit_seconds": bounds.max_seconds}
        raise VideoTooLongError(f"A video lasts at most {bounds.max_seconds} seconds.", context=context)
    return facts


def _film(source: Source, kind: Kind, walk: Walk, bounds: Bounds) -> Facts:
    with opening.opened(source, kind, damaged=walk.lacking) as container:
        stream = opening.pictures(container)
        check_size((stream.width, stream.height), Limits(max_pixels=bounds.max_pixels))
        alpha = stream.metadata.get("alpha_mode") == "1"
        counted = span(container, stream, bounds.max_frames)
        if not counted.frames:
            promised = stream.frames > 0 or counted.broken or walk.lacking
            raise MediaTruncatedError if promised else NoVideoStreamError
    with opening.opened(source, kind, damaged=walk.lacking) as container:
        stream = opening.pictures(container)
        first = _first(container, stream, alpha)
        return _facts(stream, first, counted, kind, walk)


def _first(container: InputContainer, stream: VideoStream, alpha: bool) -> VideoFrame:
    """Raises MediaCorruptError where nothing can be decoded."""
    context = decoder(stream, alpha=alpha, threads=1)
    for number, packet in enumerate(container.demux(stream)):
        if number > _FIRST:
            break
        try:
            for frame in context.decode(packet if packet.size else None):
                return frame
        except UNDECODABLE:
            continue
    raise MediaCorruptError("No picture of the video can be decoded.")


def _facts(stream: VideoStream, first: VideoFrame, counted: Span, kind: Kind, walk: Walk) -> Facts:
    container = stream.container
    base = stream.time_base or Fraction(*_MILLISECOND)
    end = counted.end(float(1 / (base * (stream.average_rate or _COMMON))))
    mean = counted.frames / ((end - counted.start) * base)
    form = layout(_planar(first))
    return Facts(
        container=kind.name,
        codec=codec(stream),
        profile=str(stream.profile or ""),
        pixel_format=_planar(first),
        index=stream.index,
        width=first.width,
        height=first.height,
        rotation=round(first.rotation / 90) * 90 % 360,
        sample_aspect=_aspect(stream),
        time_base=(base.numerator, base.denominator),
        start=counted.start,
        end=end,
        frames=counted.frames,
        rate=_ratio(mean),
        depth=form.depth,
        alpha=form.alpha,
        interlaced=first.interlaced_frame,
        colour=_colour(first, form.kind),
        others=tuple(_other(entry) for entry in container.streams if entry is not stream),
        chapters=len(container.chapters()),
        loops=walk.loops,
        damage=_damage(counted, walk),
    )


def _planar(frame: VideoFrame) -> str:
    try:
        return planar(frame.format.name)
    except ValueError:
        raise UnsupportedMediaTypeError("The video's pixel format is not read here.") from None


def _aspect(stream: VideoStream) -> tuple[int, int]:
    found = stream.sample_aspect_ratio
    return (found.numerator, found.denominator) if found else (1, 1)


def _ratio(rate: Fraction) -> tuple[int, int]:
    found = rate.limit_denominator(_MOST)
    return found.numerator, found.denominator


def _colour(frame: VideoFrame, kind: str) -> Colour:
    """Red, green and blue, and grey of which nobody says more, have their full range."""
    full = kind == "gbr" or frame.color_range == _JPEG or frame.format.name.startswith("yuvj")
    full |= kind == "gray" and frame.color_range == 0
    return Colour(full, int(frame.color_primaries), int(frame.color_trc), int(frame.colorspace))


def _other(stream: Stream) -> Other:
    kind = "attachment" if opening.is_cover(stream) else stream.type if stream.type in _KINDS else "data"
    context = stream.codec_context
    return Other(kind, context.name if context is not None else "", stream.index, stream.metadata.get("language", ""))


def _damage(counted: Span, walk: Walk) -> tuple[str, ...]:
    found = {TRUNCATED: counted.broken or walk.lacking, DAMAGED: counted.corrupt or walk.broken}
    return tuple(word for word, is_so in found.items() if is_so)


def _webp(kind: Kind, walk: Walk, bounds: Bounds) -> Facts:
    check_size(walk.size, Limits(max_pixels=bounds.max_pixels))
    if len(walk.durations) > bounds.max_frames:
        raise too_many(bounds.max_frames)
    width, height = walk.size
    end = sum(walk.durations)
    return Facts(
        container=kind.name,
        codec="webp",
        profile="",
        pixel_format="gbrap" if walk.alpha else "gbrp",
        index=0,
        width=width,
        height=height,
        rotation=0,
        sample_aspect=(1, 1),
        time_base=_MILLISECOND,
        start=0,
        end=end,
        frames=len(walk.durations),
        rate=_ratio(Fraction(len(walk.durations) * 1000, end)),
        alpha=walk.alpha,
        colour=Colour(full_range=True),
        loops=walk.loops,
        damage=() if walk.complete else (TRUNCATED,),
    )

"""A video's frames one after the other, as planes: decoded, put into one format and size where a stream changes them.

Animated GIF and PNG come as FFmpeg composes them, WebP as libwebp does. Runs in the limited process only.
Knows PyAV, Pillow's reader for WebP and numpy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO, cast

import av
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter
from av.video.stream import VideoStream
from PIL.WebPImagePlugin import WebPImageFile

from shared.rejections import MediaCorruptError, MediaTruncatedError, UnsupportedMediaTypeError
from shared.video import animations, opening
from shared.video.decoders import UNDECODABLE, decoder
from shared.video.delays import DEMUXERS, shown_for
from shared.video.facts import FORMAT_CHANGES, SIZE_CHANGES
from shared.video.formats import layout, planar
from shared.video.frame import Samples
from shared.video.sniff import Kind, sniff
from shared.video.source import Source
from shared.video.walk import walked

_UNSETTLED = 3
"""First pictures of a file whose times need not be in their order: VLC learns only from them how late pictures are."""


@dataclass(frozen=True)
class Wanted:
    pixel_format: str
    """A planar one."""
    width: int
    height: int
    alpha: bool
    """Whether the file has an alpha that only some decoders give."""
    threads: int
    start: int | None
    """Tick of the first frame that is wanted; None: the very first."""


@dataclass(frozen=True)
class Decoded:
    planes: tuple[Samples, ...]
    """Views into the decoder's memory, valid until the next one is asked for."""
    pts: int
    duration: int
    key: bool
    damaged: bool


@dataclass
class Damage:
    """What was found when the frames are at their end."""

    truncated: bool = False
    lost: int = 0
    """Packets of which no picture came."""
    changes: set[str] = field(default_factory=set)
    """Words for what is no damage: a picture of another size or pixel format than the video's first."""


def frames(source: Source, wanted: Wanted, damage: Damage) -> Iterator[Decoded]:
    """Every frame in the order of showing, at rising times; `damage` is complete after the last.

    Raises what `shared.video.probe` raises for a file that cannot be opened at all.
    """
    kind = sniff(source)
    if kind is None:
        raise UnsupportedMediaTypeError("This is a still picture.")
    walk = walked(kind.name, source)
    if not walk.indexed:
        raise MediaTruncatedError("The index of the video is missing.")
    damage.truncated = not walk.complete
    found = _film(source, kind, wanted, damage) if kind.demuxer else _webp(source, wanted, damage)
    for frame in found:
        if wanted.start is None or frame.pts >= wanted.start:
            yield frame


def _film(source: Source, kind: Kind, wanted: Wanted, damage: Damage) -> Iterator[Decoded]:
    reformat = VideoReformatter()
    with opening.opened(source, kind, damaged=damage.truncated) as container:
        last = None
        for number, (frame, key, damaged) in enumerate(_decoded(container, wanted, damage)):
            damage.changes |= _changes(frame, wanted)
            planes = _planes(reformat, frame, wanted)
            pts = frame.pts if frame.pts is not None else (0 if last is None else last + 1)
            back = last is not None and pts < last  # the container's times are not in the order of its pictures
            last = pts if last is None else max(pts, last + 1)
            yield Decoded(planes, last, frame.duration or 0, key, damaged or (back and number >= _UNSETTLED))


def _decoded(container: InputContainer, wanted: Wanted, damage: Damage) -> Iterator[tuple[VideoFrame, bool, bool]]:
    """Each with whether it is a key frame and whether it is damaged."""
    stream = opening.pictures(container)
    context = decoder(stream, alpha=wanted.alpha, threads=wanted.threads)
    if wanted.start is not None and container.format.name not in DEMUXERS:  # animations lean on all from the first
        container.seek(wanted.start, stream=stream, backward=True)
    after_loss, going = False, True
    keys: set[int | None] = set()  # not every decoder says so of its frames
    packets = opening.packets(container, stream)
    while going:
        packet = _next(packets, damage)
        if packet is not None and packet.is_keyframe:
            keys.add(packet.pts)
        try:
            made = context.decode(packet)
            going = packet is not None
        except UNDECODABLE:  # the next call goes on behind it, also when it is the end
            damage.lost += 1
            after_loss, made = True, []
        except av.error.EOFError:
            return
        for frame in made:
            yield frame, frame.key_frame or frame.pts in keys, frame.is_corrupt or after_loss
            after_loss = False


def _next(packets: Iterator[Packet[VideoStream]], damage: Damage) -> Packet[VideoStream] | None:
    """None at the end, of which FFmpeg makes an empty packet, and where the container breaks off."""
    try:
        packet = next(packets, None)
    except av.error.FFmpegError:
        damage.truncated = True
        return None
    return packet if packet is not None and packet.size else None


def _changes(frame: VideoFrame, wanted: Wanted) -> set[str]:
    try:
        name = planar(frame.format.name)
    except ValueError:
        name = ""
    size = (frame.width, frame.height) != (wanted.width, wanted.height)
    return {word for word, is_so in ((SIZE_CHANGES, size), (FORMAT_CHANGES, name != wanted.pixel_format)) if is_so}


def _planes(reformat: VideoReformatter, frame: VideoFrame, wanted: Wanted) -> tuple[Samples, ...]:
    name, size = frame.format.name, (frame.width, frame.height)
    if name.replace("yuvj", "yuv") != wanted.pixel_format or size != (wanted.width, wanted.height):
        frame = reformat.reformat(frame, wanted.width, wanted.height, wanted.pixel_format)
    form = layout(wanted.pixel_format)
    kind: type[np.uint8] | type[np.uint16] = np.uint8 if form.bytes == 1 else np.uint16
    views = []
    for plane, (rows, columns) in zip(frame.planes, form.shapes(wanted.width, wanted.height), strict=True):
        samples = np.frombuffer(memoryview(plane), kind, rows * plane.line_size // form.bytes)
        views.append(samples.reshape(rows, -1)[:, :columns])
    return cast("tuple[Samples, ...]", tuple(views))


def _webp(source: Source, wanted: Wanted, damage: Damage) -> Iterator[Decoded]:
    """Composed by libwebp, up to a picture that cannot be: none after it could be right.

    Raises MediaCorruptError where that is the first.
    """
    mode = "RGBA" if layout(wanted.pixel_format).alpha else "RGB"
    at = number = 0
    try:
        image = WebPImageFile(BytesIO(animations.whole_webp(source)) if damage.truncated else cast("BinaryIO", source))
        for number in range(image.n_frames):
            image.seek(number)
            image.load()
            pixels = np.asarray(image.convert(mode))
            order = (1, 2, 0, 3)[: pixels.shape[2]]
            duration = shown_for(int(image.info["duration"]))
            yield Decoded(tuple(pixels[..., plane] for plane in order), at, duration, number == 0, damaged=False)
            at += duration
    except (OSError, EOFError, ValueError, SyntaxError) as error:
        if not number:
            raise MediaCorruptError("A picture of the animation cannot be decoded.") from error
        damage.lost += 1

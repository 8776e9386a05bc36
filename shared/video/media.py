"""Files of packets: read without a decoder, and clips whose clock counts ticks.

Whoever only moves packets opens no decoder, also not to look for what the container does not say: hostile pictures are
decoded in the child process alone. Knows PyAV.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import av
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from shared.rejections import MediaCorruptError, UnsupportedMediaTypeError

CLOCK = Fraction(1, 1000)
"""What FFmpeg's Matroska writer says of every file. In a clip it stands for one tick of the video's own time base."""
_DEMUXERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,gif,apng,webp_pipe,webp"
_CLOSED = {"protocol_whitelist": "file", "format_whitelist": _DEMUXERS, "codec_whitelist": "none"}
SOUNDS = (
    "aac,mp3,mp3float,mp2,mp2float,ac3,eac3,dca,truehd,alac,flac,opus,libopus,vorbis,wmav2,amrnb,amrwb,adpcm_ima_wav,"
    "adpcm_ms,pcm_s16le,pcm_s16be,pcm_s24le,pcm_s24be,pcm_s32le,pcm_s32be,pcm_f32le,pcm_f32be,pcm_f64le,pcm_u8,pcm_s8,"
    "pcm_mulaw,pcm_alaw"
)
"""FFmpeg's names of the decoders that sound is given to."""
FORMATS = {"mp4": "mp4", "mov": "mov", "mkv": "matroska", "webm": "webm"}
"""FFmpeg's name of the writer of each container."""


def reading(path: Path) -> InputContainer:
    """The packets of a file. Decoders stay closed, so that pixel format and colours may be unknown.

    Raises UnsupportedMediaTypeError for another container, MediaCorruptError for one that cannot be read.
    """
    try:
        return av.open(str(path), "r", container_options=dict(_CLOSED), metadata_errors="ignore")
    except av.error.InvalidDataError as error:
        raise MediaCorruptError("The container of the video cannot be read.") from error
    except av.error.ArgumentError as error:
        raise UnsupportedMediaTypeError("Not a container of video that is read here.") from error


def is_filled(clip: Path) -> bool:
    """Whether it holds a packet: of a part of which no picture can be decoded the clip has none, and FFmpeg does
    not open it."""
    try:
        reading(clip).close()
    except av.error.EOFError:
        return False
    return True


def packets(container: InputContainer, *streams: Stream, damage: bool = False) -> Iterator[Packet[Any]]:
    """What the file holds, in its order. `damage`: whether the file is known to break off, which then ends it.

    Raises MediaCorruptError.
    """
    try:
        for packet in container.demux(*streams):
            if packet.size:
                yield packet
    except av.error.FFmpegError as error:
        if not damage:
            raise MediaCorruptError("The video breaks off in the middle.") from error


def sounding(source: Path | BinaryIO) -> InputContainer:
    """A file whose sound is decoded. No other file is opened for it. Raises FFmpeg's own errors."""
    held = str(source) if isinstance(source, Path) else source
    return av.open(held, "r", container_options={**_CLOSED, "codec_whitelist": SOUNDS}, metadata_errors="ignore")


def writing(path: Path | BinaryIO, name: str, options: dict[str, str]) -> OutputContainer:
    """A file of the container `name` that says neither when nor by what it was made."""
    return av.open(
        str(path) if isinstance(path, Path) else path,
        "w",
        format=name,
        container_options={"fflags": "bitexact", **options},
    )


def clip(path: Path | BinaryIO) -> OutputContainer:
    """Matroska whose timestamps are ticks."""
    return writing(path, "matroska", {"avoid_negative_ts": "disabled"})


def video(container: InputContainer, index: int = -1) -> VideoStream:
    """The video stream of a clip, or number `index` of a container."""
    found = container.streams.video[0] if index < 0 else container.streams[index]
    assert isinstance(found, VideoStream)
    return found


def transparent(stream: VideoStream) -> bool:
    """Whether the container says that there is a second, hidden picture, which is transparency."""
    return any(name.lower() == "alpha_mode" and text == "1" for name, text in stream.metadata.items())

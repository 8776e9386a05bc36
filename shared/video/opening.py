"""A hostile file before FFmpeg: one demuxer, chosen by us, no other file, few decoders, the video among its streams.

Runs in the limited process only. Knows PyAV and the error tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import av
from av.container import InputContainer
from av.packet import Packet
from av.stream import Disposition, Stream
from av.video.stream import VideoStream

from shared.rejections import (
    MediaCorruptError,
    MediaTruncatedError,
    NoVideoStreamError,
    UnsupportedMediaTypeError,
)
from shared.video import delays
from shared.video.sniff import Kind
from shared.video.source import Source

_CODECS = (
    *("h264", "hevc", "av1", "libdav1d", "vp8", "vp9", "libvpx", "libvpx-vp9", "mpeg4", "mpeg2video", "mpeg1video"),
    *("h263", "mjpeg", "prores", "dnxhd", "cfhd", "ffv1", "qtrle", "rawvideo", "v210", "png", "gif", "apng", "theora"),
)
"""FFmpeg's names of the decoders that are let in: what cameras, browsers and editors write."""
_BLOCK = 2**18
MAX_STREAMS = 200
"""Streams of one file; subtitled films with fonts attached have some dozens."""


@contextmanager
def opened(source: Source, kind: Kind, *, damaged: bool) -> Iterator[InputContainer]:
    """The container, with errors of our tree for whatever goes wrong with it inside.

    `damaged`: whether the file is known to break off, so that what cannot be read is cut off rather than corrupt.
    """
    source.seek(0)
    try:
        with av.open(
            source,
            "r",
            format=kind.demuxer,
            container_options={
                "protocol_whitelist": "none",
                "codec_whitelist": ",".join(_CODECS),
                "max_streams": str(MAX_STREAMS),
                **delays.DEMUXERS.get(kind.demuxer, {}),
            },
            metadata_errors="replace",
            buffer_size=_BLOCK,
            io_open=_refused,
        ) as container:
            yield container
    except MemoryError:
        raise  # FFmpeg's is both
    except av.error.FFmpegError as error:
        raise (MediaTruncatedError if damaged else MediaCorruptError)("The video cannot be read.") from error


def packets(container: InputContainer, stream: VideoStream) -> Iterator[Packet[VideoStream]]:
    """The video's, in the file's order, and an empty one at its end; raises FFmpeg's own errors."""
    found = container.demux(stream)
    return delays.paced(found) if container.format.name in delays.DEMUXERS else found


def _refused(*_: object) -> NoReturn:
    raise PermissionError("No other file is opened for a video.")


def is_cover(stream: Stream) -> bool:
    """Whether it is a still picture beside the video: a cover, a preview."""
    return bool(stream.disposition & (Disposition.attached_pic | Disposition.timed_thumbnails))


def pictures(container: InputContainer) -> VideoStream:
    """The video: the first that is neither a cover nor a preview, the default one before others.

    Raises NoVideoStreamError, UnsupportedMediaTypeError for a codec that is not let in.
    """
    found = [stream for stream in container.streams.video if not is_cover(stream)]
    if not found:
        raise NoVideoStreamError
    best = next((stream for stream in found if stream.disposition & Disposition.default), found[0])
    if best.codec_context is None or best.codec_context.name not in _CODECS:
        raise UnsupportedMediaTypeError("The video's codec is not read here.")
    return best

"""The decoder for a stream. Runs in the limited process only. Knows PyAV."""

from __future__ import annotations

from typing import cast

import av
from av.codec.context import ThreadType
from av.video.codeccontext import VideoCodecContext
from av.video.stream import VideoStream

_WITH_ALPHA = {"vp9": "libvpx-vp9", "vp8": "libvpx"}
"""FFmpeg's own decoders of these drop what lies beside the picture, where its alpha is."""
_PLAIN = {decoder: codec for codec, decoder in _WITH_ALPHA.items()} | {"libdav1d": "av1"}

UNDECODABLE = (av.error.InvalidDataError, av.error.ExternalError, av.error.PatchWelcomeError)
"""What a decoder says of one packet, after which it goes on: also of what zlib cannot unpack (PNG), and of what only a
damaged header asks for."""


def decoder(stream: VideoStream, *, alpha: bool, threads: int) -> VideoCodecContext:
    """Not yet open. `alpha`: whether the file says that there is one beside the picture; `threads`: at most so many."""
    name = _WITH_ALPHA.get(stream.codec_context.name) if alpha else None
    context = stream.codec_context
    if name is not None:
        context = cast("VideoCodecContext", av.CodecContext.create(name, "r"))
        context.extradata = stream.codec_context.extradata
    context.thread_count = threads
    context.thread_type = ThreadType.AUTO if threads > 1 else ThreadType.NONE
    return context


def codec(stream: VideoStream) -> str:
    """FFmpeg's name of the codec, whichever decoder stands for it."""
    name = stream.codec_context.name
    return _PLAIN.get(name, name)

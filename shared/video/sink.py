"""A clip as it is written, in one thread: runs of frames that are encoded, and groups that are passed on between them.

Every run is an encoder of its own, which begins with a key frame and leans on nothing before. Knows PyAV, the encoders
and how groups are passed on.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.filter
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext

from shared.video import encoders, media
from shared.video.encoders import Spec
from shared.video.faults import EncodeFailedError
from shared.video.groups import Group
from shared.video.passing import Passing


class Sink:
    """Raises EncodeFailedError."""

    def __init__(self, path: Path, name: str, spec: Spec, passing: Passing | None) -> None:
        """`name` of the encoder; without `passing` everything is encoded."""
        self._name, self._spec, self._passing = name, spec, passing
        self._out = media.clip(path)
        stream = self._out.add_stream(name, rate=encoders.rate(spec.facts))
        assert isinstance(stream, av.VideoStream)
        self._stream = stream
        self._context: VideoCodecContext | None = stream.codec_context
        encoders.configure(stream.codec_context, name, spec)
        self._own = stream.codec_context.extradata or b""
        self._begin()
        self._fields = _Fields(spec) if spec.field_order in encoders.FIELDS and name == "libx264" else None
        self._key = 0
        self.frames = 0
        """Written."""

    def _begin(self) -> None:
        """Say what stands before the first packet."""
        front = self._passing.front(self._own) if self._passing else None
        if front is not None:
            self._stream.codec_context.extradata = front
        self._stream.time_base = media.CLOCK
        self._out.start_encoding()

    def encode(self, picture: av.VideoFrame) -> None:
        if self._context is None:
            self._context = self._next()
        self._packets(self._context.encode(self._fields.marked(picture) if self._fields else picture))

    def copy(self, group: Group) -> None:
        assert self._passing is not None
        self._flush()
        for packet in self._passing.copied(group):
            self._write(packet)

    def close(self, frames: int) -> None:
        """`frames`: as many as were given."""
        self._flush()
        self._out.close()
        if self.frames != frames:
            raise EncodeFailedError(f"The encoder took {frames} frames and gave {self.frames}.")

    def _next(self) -> VideoCodecContext:
        """The encoder of another run."""
        context = av.CodecContext.create(self._name, "w")
        assert isinstance(context, VideoCodecContext)
        encoders.configure(context, self._name, self._spec)
        if (context.extradata or b"") != self._own:
            raise EncodeFailedError("An encoder opened twice does not say twice the same.")
        return context

    def _flush(self) -> None:
        if self._context is not None:
            self._packets(self._context.encode(None))
        self._context = None

    def _packets(self, packets: list[Packet[Any]]) -> None:
        for packet in packets:
            self._write(self._passing.encoded(packet, self._own) if self._passing else packet)

    def _write(self, packet: Packet[Any]) -> None:
        """Matroska keeps no decode times, but FFmpeg wants some: the last key frame's is before all that follows."""
        if packet.is_keyframe and packet.pts is not None:
            self._key = packet.pts
        packet.dts = self._key
        packet.stream = self._stream
        packet.time_base = media.CLOCK
        self._out.mux(packet)
        self.frames += 1


class _Fields:
    """Marks frames with the field that comes first, which x264 takes from each of them."""

    def __init__(self, spec: Spec) -> None:
        target = spec.target
        self._base = Fraction(*spec.facts.time_base)
        self._graph = av.filter.Graph()
        source = self._graph.add_buffer(
            width=target.width, height=target.height, format=av.VideoFormat(target.pixel_format), time_base=self._base
        )
        marker = self._graph.add("setfield", encoders.FIELDS[spec.field_order])
        sink = self._graph.add("buffersink")
        source.link_to(marker)
        marker.link_to(sink)
        self._graph.configure()

    def marked(self, picture: av.VideoFrame) -> av.VideoFrame:
        kind = picture.pict_type
        self._graph.push(picture)
        found = self._graph.pull()
        assert isinstance(found, av.VideoFrame)
        found.pict_type = kind
        return found

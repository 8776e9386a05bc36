"""A video's packets counted, none decoded: how many pictures are shown, and from when to when.

Knows PyAV's packets.
"""

from __future__ import annotations

from dataclasses import dataclass

import av
from av.container import InputContainer
from av.packet import Packet
from av.stream import Discard
from av.video.stream import VideoStream

from shared.rejections import VideoTooLongError
from shared.video import opening


@dataclass
class Span:
    """Of the pictures shown, in ticks of the stream's time base."""

    frames: int = 0
    start: int = 0
    last: int = 0
    """When the last picture begins."""
    before: int = 0
    """When the one before it does."""
    length: int = 0
    """Of the last picture; 0 where the container does not say."""
    broken: bool = False
    """Whether the container ends in the middle of what it announced."""
    corrupt: bool = False
    """Whether it calls a packet damaged itself."""

    def take(self, pts: int, duration: int) -> None:
        self.frames += 1
        if self.frames == 1:
            self.start, self.before, self.last, self.length = pts, pts, pts, duration
        elif pts >= self.last:
            self.before, self.last, self.length = self.last, pts, duration
        else:
            self.start, self.before = min(self.start, pts), max(self.before, pts)

    def end(self, tick: float) -> int:
        """When the last picture stops being shown; `tick`: how long, if nothing tells."""
        return self.last + (self.length or self.last - self.before or max(1, round(tick)))


def span(container: InputContainer, stream: VideoStream, max_frames: int) -> Span:
    """Demultiplex the whole file; pictures that an edit list leaves out, or that only help others, do not count.

    Raises VideoTooLongError as soon as there are more than `max_frames`.
    """
    for other in container.streams:
        other.discard = Discard.default if other is stream else Discard.all
    found, hides = Span(), stream.codec_context.name in ("vp8", "libvpx")
    try:
        for packet in opening.packets(container, stream):
            found.corrupt |= packet.is_corrupt
            if not packet.size or packet.is_discard or (hides and _is_hidden(packet)):
                continue
            pts = packet.pts if packet.pts is not None else packet.dts
            found.take(found.last if pts is None else pts, packet.duration or 0)
            if found.frames > max_frames:
                raise too_many(max_frames)
    except av.error.FFmpegError:
        found.broken = True
    return found


def too_many(max_frames: int) -> VideoTooLongError:
    return VideoTooLongError(f"A video has at most {max_frames} frames.", context={"limit_frames": max_frames})


def _is_hidden(packet: Packet[VideoStream]) -> bool:
    """RFC 6386, 9.1: bit 4 of a VP8 frame says whether it is shown."""
    return not memoryview(packet)[0] & 0x10

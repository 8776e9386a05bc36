"""How long a picture of an animation is shown: as long as it says, or what browsers make of next to no time.

Knows FFmpeg's packets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.stream import VideoStream

HASTY, _INSTEAD = 10, 100
"""Milliseconds: what says that it is shown for the first or less is shown for the second, be it GIF, PNG or WebP, by
Chromium (DeferredImageDecoder::FrameDurationAtIndex), Firefox (FrameTimeout) and WebKit."""
_EXTENSION, _END = 0x21, 0x3B
"""GIF89a, appendix A: what such a block and the end begin with. No chunk of a PNG begins so."""
DEMUXERS: dict[str, dict[str, str]] = {"gif": {}, "apng": {"default_fps": str(1000 // _INSTEAD)}}
"""FFmpeg's for animations, with options: no time at all is otherwise a 15th of a second in a PNG."""


def shown_for(milliseconds: int) -> int:
    """Milliseconds that a picture is shown for."""
    return milliseconds if milliseconds > HASTY else _INSTEAD


def _pictured(packet: Packet[VideoStream]) -> bool:
    """Whether more than extensions of a GIF is in it: FFmpeg makes a packet of a comment behind the last picture."""
    data, at = memoryview(packet), 0
    while at < len(data) and data[at] == _EXTENSION:
        at += 2
        while at < len(data) and data[at]:
            at += 1 + data[at]
        at += 1
    return at < len(data) and data[at] != _END


def paced(packets: Iterator[Packet[VideoStream]]) -> Iterator[Packet[VideoStream]]:
    """Those of an animation from its begin, each at the time at which it is shown, one after the other."""
    at = 0
    for packet in packets:
        if packet.size and not _pictured(packet):
            continue
        if packet.size:
            tick = 1000 * packet.time_base
            said = int((packet.duration or 0) * tick)
            if shown_for(said) != said:
                packet.duration = round(shown_for(said) / tick)
            packet.pts = packet.dts = at
            at += packet.duration or 0
        yield packet

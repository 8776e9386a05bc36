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
DEMUXERS: dict[str, dict[str, str]] = {"gif": {}, "apng": {"default_fps": str(1000 // _INSTEAD)}}
"""FFmpeg's for animations, with options: no time at all is otherwise a 15th of a second in a PNG."""


def shown_for(milliseconds: int) -> int:
    """Milliseconds that a picture is shown for."""
    return milliseconds if milliseconds > HASTY else _INSTEAD


def paced(packets: Iterator[Packet[VideoStream]]) -> Iterator[Packet[VideoStream]]:
    """Those of an animation from its begin, each at the time at which it is shown, one after the other."""
    at = 0
    for packet in packets:
        if packet.size:
            tick = 1000 * packet.time_base
            said = int((packet.duration or 0) * tick)
            if shown_for(said) != said:
                packet.duration = round(shown_for(said) / tick)
            packet.pts = packet.dts = at
            at += packet.duration or 0
        yield packet

"""Frames of a finished video to look at, about one a second, without decoding the rest.

Groups that were passed on are the source's own bytes: this runs where those may be decoded. Knows PyAV.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from shared.video import media

_LONG = 1.5
"""Of the time between looks: a group that lasts longer is decoded whole, of others the key frame alone."""


def key_frames(path: Path, every: float = 1.0) -> Iterator[tuple[float, NDArray[np.uint8]]]:
    """Second and picture, uint8 BGR [h, w, 3], upright. Two are at least half of `every` seconds apart.

    Raises MediaCorruptError, and FFmpeg's errors for pictures that cannot be decoded.
    """
    latest = float("-inf")
    with media.reading(path) as container:
        stream = media.video(container)
        tick = stream.time_base or Fraction(1, 1000)
        for group in _groups(media.packets(container, stream)):
            times = [float(packet.pts * tick) for packet in group if packet.pts is not None]
            wanted = group if max(times, default=0) - min(times, default=0) > _LONG * every else group[:1]
            for frame in _decoded(stream.codec_context, wanted):
                at = float((frame.pts or 0) * tick)
                if at - latest >= (every if len(wanted) > 1 else every / 2):
                    latest = at
                    yield at, _upright(frame)


def _groups(packets: Iterator[Packet[Any]]) -> Iterator[list[Packet[Any]]]:
    found: list[Packet[Any]] = []
    for packet in packets:
        if packet.is_keyframe and found:
            yield found
            found = []
        found.append(packet)
    if found:
        yield found


def _decoded(context: VideoCodecContext, packets: list[Packet[Any]]) -> Iterator[VideoFrame]:
    for packet in packets:
        yield from context.decode(packet)
    yield from context.decode(None)
    context.flush_buffers()


def _upright(frame: VideoFrame) -> NDArray[np.uint8]:
    found: NDArray[np.uint8] = np.rot90(frame.to_ndarray(format="bgr24"), round(frame.rotation / 90) % 4)
    return np.ascontiguousarray(found)

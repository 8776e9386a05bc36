"""A few pictures of a whole video: its key frames, copied out so that only they need be decoded.

Knows packets.
"""

from __future__ import annotations

from pathlib import Path

from shared.video import media


def key_frames(path: Path, index: int, out: Path, most: int) -> int:
    """Write a clip of the key frames of stream `index`, as they are, and give their number.

    At most `most` of them, spread evenly. Encoders of ours, and nearly all others, begin every scene with one. Raises
    MediaCorruptError.
    """
    with media.reading(path) as container:
        stream = media.video(container, index)
        found = sum(packet.is_keyframe for packet in media.packets(container, stream))
    step, seen, taken = max(1, -(-found // most)), 0, 0
    with media.reading(path) as container, media.clip(out) as made:
        stream = media.video(container, index)
        track = made.add_stream_from_template(stream, opaque=True)
        track.time_base = media.CLOCK
        for packet in media.packets(container, stream):
            if not packet.is_keyframe:
                continue
            if seen % step == 0:
                packet.stream, packet.time_base, packet.pts, packet.dts = track, media.CLOCK, taken, taken
                made.mux(packet)
                taken += 1
            seen += 1
    return taken

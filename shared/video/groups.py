"""Groups of pictures of a clip, as packets: what can be passed on without being encoded again.

Nothing is decoded. Knows the packets and the parameter sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from av.packet import Packet
from av.video.stream import VideoStream

from shared.video import av1, media, parameters, vp9
from shared.video.light import av1_units, sei
from shared.video.units import Bits, split

_KEY_H264, _KEYS_HEVC = 5, (19, 20)
"""Pictures at which a decoder begins anew: IDR."""
_SEQUENCE_H264, _SEQUENCE_HEVC = 7, 33
_MOST = 32
"""Sequence headers of one stream, by their numbers; HEVC has half as many."""
_FRAMES_AV1 = (3, 6)
_RECOVERY = 6
"""Type of a message."""


@dataclass(frozen=True)
class Group:
    """The packets from one key frame to the next, in the order of decoding."""

    packets: tuple[Packet[VideoStream], ...]
    told: bytes = b""
    """What the clip says before its first packet."""
    size: tuple[int, int] = (0, 0)
    """Width and height, as the clip says; 0 where it does not."""

    @property
    def times(self) -> tuple[int, ...]:
        """Ticks at which its frames are shown, in their order."""
        return tuple(sorted(packet.pts for packet in self.packets if packet.pts is not None))


def groups(path: Path) -> Iterator[Group]:
    """Of a clip, in the order of decoding; one of them is in memory. Raises MediaCorruptError."""
    found: list[Packet[VideoStream]] = []
    with media.reading(path) as container:
        stream = media.video(container)
        told, size = bytes(stream.codec_context.extradata or b""), (stream.width, stream.height)
        for packet in media.packets(container, stream):
            if packet.is_keyframe and found:
                yield Group(tuple(found), told, size)
                found = []
            found.append(packet)
    if found:
        yield Group(tuple(found), told, size)


def stands_alone(group: Group, codec: str) -> bool:
    """Whether a decoder needs nothing but parameter sets for all of its frames, and shows them after those before.

    `codec` is `h264`, `h265`, `av1` or `vp9`.
    """
    first = group.packets[0]
    times = [packet.pts for packet in group.packets]
    if first.pts is None or any(at is None or at < first.pts for at in times):
        return False
    try:
        return _begins_anew(bytes(first), codec) and _as_told(group, codec)
    except (ValueError, IndexError):
        return False


def _begins_anew(packet: bytes, codec: str) -> bool:
    match codec:
        case "h264":
            return any(unit[0] & 31 == _KEY_H264 for unit in split(packet))
        case "h265":
            return any(unit[0] >> 1 & 63 in _KEYS_HEVC for unit in split(packet))
        case "av1":  # show_existing_frame 0, frame_type 0, show_frame 1 (5.9.2)
            frames = [data for kind, data in av1_units(packet) if kind in _FRAMES_AV1]
            return bool(frames) and frames[0][0] >> 4 == 1
        case _:  # VP9: show_existing_frame 0, frame_type 0 (bitstream specification, 6.2)
            return packet[0] & 0b1100 == 0


def _as_told(group: Group, codec: str) -> bool:
    """Whether pictures are of the size that the clip says: headers that a group repeats are the clip's own."""
    packets = (bytes(packet) for packet in group.packets)
    match codec:
        case "h264":
            headers = {unit for packet in packets for unit in split(packet) if unit[0] & 31 == _SEQUENCE_H264}
        case "h265":
            headers = {unit for packet in packets for unit in split(packet) if unit[0] >> 1 & 63 == _SEQUENCE_HEVC}
        case "av1":
            units = (unit for packet in packets for unit in av1_units(packet))
            return {av1.size(data) for kind, data in units if kind == parameters.SEQUENCE_HEADER} <= {group.size}
        case _:
            return {found for packet in packets if (found := vp9.size(packet))} <= {group.size}
    return len(headers) <= _MOST and all(header in group.told for header in headers)


def refreshes_slowly(packet: Packet[VideoStream], codec: str) -> bool:
    """Whether a key picture is whole only after further ones: H.264's recovery point (D.2.8) with a count above 0.

    So cameras and streamers write that never send a whole picture at once. Nothing begins anew there.
    """
    if codec != "h264":
        return False
    try:
        found = [data for kind, data in sei(codec, split(bytes(packet))) if kind == _RECOVERY]
        return any(Bits(data).golomb() > 0 for data in found)
    except (ValueError, IndexError):
        return False


def inband(group: Group, codec: str) -> parameters.Sets:
    """H.264's parameter sets that stand among the pictures. Raises ValueError."""
    packets = group.packets if codec == "h264" else ()
    return parameters.h264(unit for packet in packets for unit in split(bytes(packet)))

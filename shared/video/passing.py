"""Groups without a face handed from the source's clip into ours as they are, beside groups that are encoded.

Where both may stand in one stream, and with which parameter sets, by codec (see `parameters`). Messages that a camera
or an app has put between the pictures are left out: they may say where and by whom. Knows packets and parameter sets.
"""

from __future__ import annotations

from typing import Any

from av.packet import Packet
from av.video.stream import VideoStream

from shared.video import parameters
from shared.video.choosing import Target
from shared.video.facts import Facts
from shared.video.formats import planar
from shared.video.groups import Group, inband, stands_alone
from shared.video.light import messages
from shared.video.parameters import Sets
from shared.video.units import payload, split, started

_CODECS = {"h264": "h264", "h265": "hevc", "av1": "av1", "vp9": "vp9"}
_UNREGISTERED = 5
"""Type of a message of a maker's own, H.264 D.2.7."""
_X264 = bytes.fromhex("dc45e9bde6d948b7962cd820d923eeef")
"""Names the messages by which decoders know of old faults of x264."""


def same_stream(facts: Facts, target: Target) -> bool:
    """Whether pictures of the source are what the target's encoder would write, for whoever reads them.

    HEVC is passed on in Matroska only: in MP4 the parameter sets before groups would want the tag `hev1`, which Apple's
    players refuse.
    """
    size = (facts.width, facts.height) == (target.width, target.height)
    pixels = planar(facts.pixel_format) == target.pixel_format and facts.alpha == target.alpha
    placed = target.codec != "h265" or target.container == "mkv"
    return _CODECS.get(target.codec) == facts.codec and size and pixels and placed


class Passing:
    """How the groups of one source come into a clip. Raises ValueError for a source whose sets cannot be read."""

    def __init__(self, codec: str, record: bytes) -> None:
        """`record`: what the clip says before its first packet (avcC, hvcC, av1C)."""
        self._codec = codec
        self._units = parameters.repeated(codec, record)
        self._sets = parameters.h264(self._units) if codec == "h264" else Sets({}, {})
        number = self._sets.free()
        if number is None:
            raise ValueError("Every number of a parameter set is taken.")
        self.number = number
        """Of our own sets, H.264."""

    def takes(self, group: Group) -> bool:
        try:
            return stands_alone(group, self._codec) and self._sets.agrees(inband(group, self._codec))
        except ValueError:
            return False

    def front(self, own: bytes) -> bytes | None:
        """What the clip says before its first packet; `own`: what the encoder says, with start codes. None: `own`.

        Raises ValueError where the encoder's numbers are the source's.
        """
        if self._codec != "h264":
            return None
        ours = parameters.h264(parameters.units_of("h264", own))
        if not self._sets.agrees(ours):
            raise ValueError("The encoder's parameter sets have the numbers of the source's.")
        return (self._sets | ours).written()

    def copied(self, group: Group) -> list[Packet[VideoStream]]:
        """Packets as our encoders write them: with start codes, and with their sets where these do not stand first."""
        found = []
        for place, packet in enumerate(group.packets):
            if self._codec in ("h264", "h265"):
                sets = self._units if self._codec == "h265" and not place else []
                found.append(_like(packet, started([*sets, *_clean(bytes(packet), self._codec)])))
            elif self._codec == "av1" and not place and not parameters.begins_with_header(bytes(packet)):
                found.append(_like(packet, b"".join(self._units) + bytes(packet)))
            else:
                found.append(packet)
        return found

    def encoded(self, packet: Packet[VideoStream], own: bytes) -> Packet[VideoStream]:
        """A packet of our encoder among those of the source. `own` as in `front`."""
        if self._codec == "h265" and packet.is_keyframe:
            return _like(packet, own + bytes(packet))
        return packet


def _like(packet: Packet[Any], data: bytes) -> Packet[Any]:
    made: Packet[Any] = Packet(data)
    made.pts, made.dts, made.duration = packet.pts, packet.dts, packet.duration
    made.is_keyframe = packet.is_keyframe
    return made


def _clean(packet: bytes, codec: str) -> list[bytes]:
    return [unit for unit in split(packet) if not _telling(unit, codec)]


def _telling(unit: bytes, codec: str) -> bool:
    """Whether a unit is a message of a maker's own, which may hold anything, or one that breaks off."""
    kind, header, kinds = (unit[0] & 31, 1, (6,)) if codec == "h264" else (unit[0] >> 1 & 63, 2, (39, 40))
    if kind not in kinds:
        return False
    try:
        found = list(messages(payload(unit[header:])))
    except ValueError:
        return True
    return any(kind == _UNREGISTERED and not data.startswith(_X264) for kind, data in found)

"""How bright the screen was on which an HDR video was made: read from the bitstream, handed to the encoder.

Mastering display (SMPTE ST 2086) and content light level (CTA-861.3), from the messages of H.264 and HEVC or the
metadata of AV1 before the first picture. Nothing is decoded. Knows the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shared.video.units import payload, split

_MASTERING, _CONTENT = 137, 144
"""Payload types of H.264 annex D and H.265 annex D."""
_AV1_METADATA, _AV1_CONTENT, _AV1_MASTERING = 5, 1, 2
"""AV1, 5.3.1 and 6.7.1."""


@dataclass(frozen=True)
class Light:
    mastering: tuple[int, ...] = ()
    """x and y of green, blue, red and white in steps of 0.00002, then most and least light in 0.0001 cd/m2."""
    content: tuple[int, ...] = ()
    """Most light of a pixel, and of a frame on average, cd/m2."""

    def x26x(self) -> dict[str, str]:
        """Options of x264 (`mastering-display`, `cll`) and x265 (`master-display`, `max-cll`)."""
        found = {}
        if self.mastering:
            gx, gy, bx, by, rx, ry, wx, wy, most, least = self.mastering
            text = f"G({gx},{gy})B({bx},{by})R({rx},{ry})WP({wx},{wy})L({most},{least})"
            found["master-display"] = found["mastering-display"] = text
        if self.content:
            found["max-cll"] = found["cll"] = ",".join(map(str, self.content))
        return found

    def av1(self) -> dict[str, str]:
        """Options of SVT-AV1."""
        found = {}
        if self.mastering:
            points = [f"{value * 0.00002:.5f}" for value in self.mastering[:8]]
            g, b, r, white = (f"({points[i]},{points[i + 1]})" for i in range(0, 8, 2))
            most, least = (f"{value * 0.0001:.4f}" for value in self.mastering[8:])
            found["mastering-display"] = f"G{g}B{b}R{r}WP{white}L({most},{least})"
        if self.content:
            found["content-light"] = ",".join(map(str, self.content))
        return found


def light(codec: str, packet: bytes, sets: Iterable[bytes] = ()) -> Light:
    """Of the first packet, and of the units in the container's record; empty where nothing is said.

    `codec` is `h264`, `h265` or `av1`. What is broken is left out.
    """
    try:
        found = dict(_av1(packet) if codec == "av1" else sei(codec, [*sets, *split(packet)]))
    except ValueError:
        return Light()
    return Light(_numbers(found.get(_MASTERING, b""), 24), _numbers(found.get(_CONTENT, b""), 4))


def _numbers(data: bytes, size: int) -> tuple[int, ...]:
    if len(data) < size:
        return ()
    pairs = [int.from_bytes(data[at : at + 2], "big") for at in range(0, min(size, 16), 2)]
    return (*pairs, *(int.from_bytes(data[at : at + 4], "big") for at in range(16, size, 4)))


def sei(codec: str, units: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Supplemental enhancement information: type and content. Raises ValueError where it breaks off."""
    for unit in units:
        kind, header = (unit[0] & 31, 1) if codec == "h264" else (unit[0] >> 1 & 63, 2)
        if kind != (6 if codec == "h264" else 39):
            continue
        yield from messages(payload(unit[header:]))


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and content of each message of one unit, H.264 7.3.2.3.1. Raises ValueError where they break off."""
    at, end = 0, len(data) - data.endswith(b"\x80")
    while at < end:
        numbers = []
        for _ in range(2):
            value = 0
            while at < len(data) and data[at] == 255:
                value, at = value + 255, at + 1
            if at >= len(data):
                raise ValueError("A message breaks off.")
            numbers.append(value + data[at])
            at += 1
        kind, size = numbers
        yield kind, data[at : at + size]
        at += size


def _av1(packet: bytes) -> Iterator[tuple[int, bytes]]:
    """Metadata units before the first picture, as the messages of HEVC say the same."""
    for kind, data in av1_units(packet):
        if kind != _AV1_METADATA or not data:
            continue
        if data[0] == _AV1_CONTENT and len(data) >= 5:
            yield _CONTENT, data[1:5]
        elif data[0] == _AV1_MASTERING and len(data) >= 25:
            yield _MASTERING, _rescaled(data[1:25])


def av1_units(packet: bytes) -> Iterator[tuple[int, bytes]]:
    """AV1, 5.3: type and content. Raises ValueError where a unit has no size and is not the last."""
    at = 0
    while at < len(packet):
        kind, extended, sized = packet[at] >> 3 & 15, packet[at] >> 2 & 1, packet[at] >> 1 & 1
        at += 1 + extended
        size, read = _leb128(packet[at : at + 8]) if sized else (len(packet) - at, 0)
        at += read
        yield kind, packet[at : at + size]
        at += size


def _leb128(data: bytes) -> tuple[int, int]:
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, place + 1
    raise ValueError("A size breaks off.")


def _rescaled(data: bytes) -> bytes:
    """AV1 has red, green, blue in 1/65536, most light in 1/256 and least in 1/16384 cd/m2."""
    points = [round(int.from_bytes(data[at : at + 2], "big") / 65536 / 0.00002) for at in range(0, 16, 2)]
    points = [*points[2:6], *points[0:2], *points[6:8]]
    most = round(int.from_bytes(data[16:20], "big") / 256 / 0.0001)
    least = round(int.from_bytes(data[20:24], "big") / 16384 / 0.0001)
    small = b"".join(min(point, 65535).to_bytes(2, "big") for point in points)
    return small + min(most, 2**32 - 1).to_bytes(4, "big") + min(least, 2**32 - 1).to_bytes(4, "big")

"""Network abstraction layer units of H.264 and HEVC: the pieces of a packet, in both ways of telling them apart.

ISO/IEC 14496-15 writes a length of four bytes before each (containers), ITU-T H.264 and H.265, annex B, a start code
(encoders). Knows the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

START = b"\0\0\0\1"
_LONGEST = 32
"""Zeros before a number of variable length: H.264 and AV1 know none with more."""


def split(packet: bytes) -> Iterator[bytes]:
    """Of a packet with lengths. Raises ValueError where they do not add up."""
    at = 0
    while at < len(packet):
        size = int.from_bytes(packet[at : at + 4], "big")
        at += 4 + size
        if not size or at > len(packet):
            raise ValueError("The lengths of a packet's units do not add up.")
        yield packet[at - size : at]


def split_started(packet: bytes) -> Iterator[bytes]:
    """Of a packet with start codes; zeros before one belong to no unit."""
    return (unit for part in packet.split(START[1:]) if (unit := part.rstrip(b"\0")))


def started(units: Iterable[bytes]) -> bytes:
    """A packet with start codes."""
    return b"".join(START + unit for unit in units)


def lengthed(units: Iterable[bytes]) -> bytes:
    """A packet with lengths."""
    return b"".join(len(unit).to_bytes(4, "big") + unit for unit in units)


def payload(unit: bytes) -> bytes:
    """Without the bytes that keep start codes from arising by chance."""
    return unit.replace(b"\0\0\3", b"\0\0")


class Bits:
    """Numbers of a bit string, from its begin. Raises IndexError at its end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, count: int) -> int:
        begin, self._at = self._at, self._at + count
        if self._at > 8 * len(self._data):
            raise IndexError
        held = int.from_bytes(self._data[begin // 8 : -(-self._at // 8)], "big")
        return held >> -self._at % 8 & (1 << count) - 1

    def golomb(self) -> int:
        """ue(v): Exp-Golomb, H.264 9.1. Raises IndexError for one that is too long, too."""
        zeros = 0
        while not self.take(1):
            zeros += 1
            if zeros > _LONGEST:
                raise IndexError
        return (1 << zeros | self.take(zeros)) - 1

"""Network abstraction layer units of H.264 and HEVC: the pieces of a packet, in both ways of telling them apart.

ISO/IEC 14496-15 writes a length of four bytes before each (containers), ITU-T H.264 and H.265, annex B, a start code
(encoders). Knows the standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

START = b"\0\0\0\1"
_START = re.compile(rb"\x00{2,}\x01")  # zeros before a start code belong to no unit


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
    """Of a packet with start codes."""
    return (unit for unit in _START.split(packet) if unit)


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
        self._value, self._left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise IndexError
        return self._value >> self._left & (1 << count) - 1

    def golomb(self) -> int:
        """ue(v): Exp-Golomb, H.264 9.1."""
        zeros = 0
        while not self.take(1):
            zeros += 1
        return (1 << zeros | self.take(zeros)) - 1

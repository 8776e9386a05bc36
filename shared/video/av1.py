"""AV1's sequence header: how large pictures are. Bitstream specification, 5.5.1. Knows bit strings only."""

from __future__ import annotations

from shared.video.units import Bits

_TIERED = 7
"""Level above which a tier is told."""


def size(header: bytes) -> tuple[int, int]:
    """Width and height at most. Raises IndexError where it breaks off."""
    bits = Bits(header)
    bits.take(4)
    if bits.take(1):  # of one still picture
        bits.take(5)
    else:
        _points(bits, _timing(bits))
    across, down = bits.take(4) + 1, bits.take(4) + 1
    return bits.take(across) + 1, bits.take(down) + 1


def _timing(bits: Bits) -> int:
    """Bits of a delay of the decoder's model; 0 without one."""
    if not bits.take(1):
        return 0
    bits.take(64)
    if bits.take(1):
        bits.golomb()
    if not bits.take(1):
        return 0
    width = bits.take(5) + 1
    bits.take(32 + 5 + 5)
    return width


def _points(bits: Bits, width: int) -> None:
    delayed = bits.take(1)
    for _ in range(bits.take(5) + 1):
        bits.take(12)
        if bits.take(5) > _TIERED:
            bits.take(1)
        if width and bits.take(1):
            bits.take(2 * width + 1)
        if delayed and bits.take(1):
            bits.take(4)

"""Headers of VP9's frames: how large a picture is, where one says so itself. Bitstream specification, 6.2.

Knows bit strings only.
"""

from __future__ import annotations

from shared.video.units import Bits

_HEAD = 32
"""Bytes in which all of it stands."""
_SRGB = 7
_SIZES = 3
"""Pictures of which one may have the same size."""


def size(packet: bytes) -> tuple[int, int] | None:
    """Width and height; None where the picture has those of an earlier one. Raises IndexError where it breaks off."""
    bits = Bits(packet[:_HEAD])
    bits.take(2)
    profile = bits.take(1) | bits.take(1) << 1
    if profile == 3:
        bits.take(1)
    if bits.take(1):  # show_existing_frame
        return None
    between, shown, resilient = bits.take(1), bits.take(1), bits.take(1)
    if not between:
        bits.take(24)
        _colours(bits, profile)
        return _size(bits)
    alone = not shown and bits.take(1)
    if not resilient:
        bits.take(2)
    if alone:
        bits.take(24)
        if profile:
            _colours(bits, profile)
        bits.take(8)
        return _size(bits)
    bits.take(8 + 3 * 4)
    return None if any(bits.take(1) for _ in range(_SIZES)) else _size(bits)


def _colours(bits: Bits, profile: int) -> None:
    if profile >= 2:
        bits.take(1)
    if bits.take(3) != _SRGB:
        bits.take(1)
        bits.take(3 if profile & 1 else 0)
    elif profile & 1:
        bits.take(1)


def _size(bits: Bits) -> tuple[int, int]:
    return bits.take(16) + 1, bits.take(16) + 1

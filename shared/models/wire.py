"""The protobuf wire format (https://protobuf.dev/programming-guides/encoding), walked in a memory map.

One pass over the tags, lengths skipped: a message of 500 MB costs milliseconds and no memory. Knows no message.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator

Span = tuple[int, int] | tuple[()]


def fields(data: mmap.mmap, position: int, end: int) -> Iterator[tuple[int, int, Span]]:
    """Number, value (varints) and span (length-delimited) of each field of one message. ValueError if malformed."""
    while position < end:
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        value = 0
        span: Span = ()
        if wire == 0:
            value, position = _varint(data, position)
        elif wire == 2:
            length, position = _varint(data, position)
            span = (position, position + length)
            position += length
        elif wire in (1, 5):
            position += 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if position > end or number == 0:
            raise ValueError("field out of bounds")
        yield number, value, span


def _varint(data: mmap.mmap, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise ValueError("varint too long")

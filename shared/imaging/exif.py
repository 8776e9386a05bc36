"""The one Exif fact that changes pixels: which way is up. Never raises, whatever the bytes are.

Knows the standard library. Pillow's own reader is not used: it loads every tag, warns about broken ones, decodes
a whole PNG to look for them and believes XMP, which editors leave stale after they have turned the pixels.
"""

from __future__ import annotations

import struct

UPRIGHT = 1
_TAG = 0x0112
_SHORT, _LONG = 3, 4


def orientation(exif: bytes) -> int:
    """Orientation 1..8 of an Exif block, with or without its `Exif\\0\\0` prefix; 1 for absent or invalid values.

    TIFF 6.0 section 2: byte order, offset of the first directory, entries of 12 bytes (tag, type, count, value).
    """
    tiff = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    if order is None:
        return UPRIGHT
    try:
        (start,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, start)
        for at in range(start + 2, start + 2 + 12 * entries, 12):
            tag, form = struct.unpack_from(order + "HH", tiff, at)
            if tag == _TAG:
                return _value(tiff, at + 8, order, form)
    except struct.error:
        return UPRIGHT
    return UPRIGHT


def _value(tiff: bytes, at: int, order: str, form: int) -> int:
    letter = {_SHORT: "H", _LONG: "I"}.get(form)
    value: int = struct.unpack_from(order + letter, tiff, at)[0] if letter else UPRIGHT
    return value if 1 <= value <= 8 else UPRIGHT

"""What a reader's failure says about a file: cut off, damaged, too large or of a kind nobody reads.

Readers meet hostile bytes and report them in many ways; from here on there are only the classes of shared.errors.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from PIL.Image import DecompressionBombError, DecompressionBombWarning

from shared.errors import RejectedError
from shared.imaging.sniff import AVIF, BMP, GIF, HEIC, JPEG, PNG, TIFF, WEBP, Kind
from shared.rejections import ImageTooLargeError, MediaCorruptError, MediaTruncatedError, UnsupportedMediaTypeError

_FAILURES = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    EOFError,
    ArithmeticError,
    AssertionError,
    MemoryError,
    RuntimeError,
    struct.error,
    zlib.error,
    UserWarning,
)
"""Seen from Pillow and its libraries when single bytes of good files are changed (tests/unit/imaging/test_fuzz.py);
MemoryError is what libtiff says of an absurd strip, UserWarning counts where the process makes errors of warnings."""

_CUT = ("truncated", "premature end")
_UNREAD = ("unsupported", "not supported", "not yet supported", "unknown pixel mode", "cannot handle")
_END_MARKS = {JPEG: b"\xff\xd9", PNG: b"IEND"}


@contextmanager
def reading(kind: Kind, data: bytes) -> Iterator[None]:
    """Turn every failure of a reader within the block into the error that the sender can act on."""
    try:
        yield
    except (DecompressionBombError, DecompressionBombWarning) as error:
        raise ImageTooLargeError from error
    except _FAILURES as error:
        raise _verdict(kind, data, str(error).lower()) from error


def _verdict(kind: Kind, data: bytes, words: str) -> RejectedError:
    if any(mark in words for mark in _CUT) or _is_cut(kind, data):
        return MediaTruncatedError(f"The {kind.name} file ends too early.")
    if any(mark in words for mark in _UNREAD):
        return UnsupportedMediaTypeError(f"This variant of {kind.name} cannot be read.")
    return MediaCorruptError(f"The {kind.name} file is damaged.")


def _is_cut(kind: Kind, data: bytes) -> bool:
    """Whether the format's own end is missing."""
    if kind in _END_MARKS:
        return _END_MARKS[kind] not in data
    if kind is GIF:
        return not data.rstrip(b"\0").endswith(b";")
    if kind is WEBP:
        return len(data) < 8 + int.from_bytes(data[4:8], "little")
    if kind is BMP:
        return len(data) < int.from_bytes(data[2:6], "little")
    if kind is TIFF:
        return len(data) < _directory(data)
    return kind in (AVIF, HEIC) and _last_box_end(data) > len(data)


def _directory(data: bytes) -> int:
    """Where a TIFF file keeps its first directory, commonly behind the pixels, in bytes."""
    order: Literal["little", "big"] = "little" if data[:2] == b"II" else "big"
    return int.from_bytes(data[8:16] if 43 in data[2:4] else data[4:8], order)


def _last_box_end(data: bytes) -> int:
    """Where the last top-level box of an ISO base media file claims to end, in bytes."""
    at = 0
    while at + 16 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 1:
            size = int.from_bytes(data[at + 8 : at + 16], "big")
        if size < 8:  # 0: to the end of the file; the rest is not allowed
            return len(data)
        at += size
    return at

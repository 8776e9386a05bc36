"""Which picture format some bytes are and which size they claim, told from their first bytes, never from a name.

Only what is listed here is ever opened: a text, an archive, PostScript or SVG reaches no decoder at all.
Knows the standard library and the error tree.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from shared.imaging.foreign import name_of
from shared.rejections import MediaEmptyError, UnsupportedMediaTypeError


@dataclass(frozen=True)
class Kind:
    name: str
    content_type: str
    reader: str
    """`module:class` of the reader, imported on first use; a subclass of PIL.ImageFile.ImageFile."""


JPEG = Kind("jpeg", "image/jpeg", "PIL.JpegImagePlugin:JpegImageFile")
PNG = Kind("png", "image/png", "PIL.PngImagePlugin:PngImageFile")
GIF = Kind("gif", "image/gif", "PIL.GifImagePlugin:GifImageFile")
WEBP = Kind("webp", "image/webp", "PIL.WebPImagePlugin:WebPImageFile")
TIFF = Kind("tiff", "image/tiff", "PIL.TiffImagePlugin:TiffImageFile")
BMP = Kind("bmp", "image/bmp", "PIL.BmpImagePlugin:BmpImageFile")
AVIF = Kind("avif", "image/avif", "PIL.AvifImagePlugin:AvifImageFile")
HEIC = Kind("heic", "image/heic", "pillow_heif:HeifImageFile")

_MAGIC = (
    (b"\xff\xd8\xff", JPEG),
    (b"\x89PNG\r\n\x1a\n", PNG),
    (b"GIF87a", GIF),
    (b"GIF89a", GIF),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
    (b"II+\0", TIFF),  # BigTIFF
    (b"MM\0+", TIFF),
)
_BMP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
"""Sizes of the known information headers: two letters alone would match any text that starts with BM."""

_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIC_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"})
_HEIC_SEQUENCES = frozenset({b"msf1", b"hevc", b"hevx", b"hevm", b"hevs"})


def sniff(data: bytes) -> Kind:
    """Raises MediaEmptyError for no bytes, UnsupportedMediaTypeError for what is no listed format."""
    if not data:
        raise MediaEmptyError
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return WEBP
    if data[:2] == b"BM" and int.from_bytes(data[14:18], "little") in _BMP_HEADERS:
        return BMP
    brands = _brands(data)
    if brands & _AVIF_BRANDS:
        return AVIF
    if brands & _HEIC_BRANDS:
        return HEIC
    if found := name_of(data):
        raise UnsupportedMediaTypeError(f"This is {found}, no picture that we read.", context={"found": found})
    raise UnsupportedMediaTypeError


def is_sequence(kind: Kind, data: bytes) -> bool:
    """Whether a HEIC file says that it holds a film, of which its reader would give the cover at most."""
    return kind is HEIC and bool(_brands(data) & _HEIC_SEQUENCES)


def claimed_size(kind: Kind, data: bytes) -> tuple[int, int] | None:
    """Width and height where they stand at a fixed place, so that a bomb is refused before its reader starts.

    None where the reader itself finds them without making room for pixels. Raises struct.error when cut short.
    """
    if kind is PNG:
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    if kind is GIF:
        width, height = struct.unpack_from("<HH", data, 6)
        return width, height
    return _webp_size(data) if kind is WEBP else None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """https://developers.google.com/speed/webp/docs/riff_container: the three kinds of first chunk."""
    match data[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
    return None


def _brands(data: bytes) -> frozenset[bytes]:
    """Major and compatible brands of an ISO base media file (ISO 14496-12, box `ftyp`)."""
    if data[4:8] != b"ftyp":
        return frozenset()
    end = min(int.from_bytes(data[:4], "big"), 512)
    return frozenset({data[8:12], *(data[at : at + 4] for at in range(16, end, 4))})

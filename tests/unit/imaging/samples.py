"""Pictures made by hand for these tests: case files, a colourful sample, PNG and ICC files written byte by byte."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from shared.imaging.probe import Limits

CASES = Path(__file__).parents[2] / "data" / "image"
LIMITS = Limits()
Plane = NDArray[np.uint8]


def case(name: str) -> bytes:
    return (CASES / name).read_bytes()


def colours(width: int = 53, height: int = 37) -> Plane:
    """Smooth RGB, odd sides, every corner another colour."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return np.dstack([x, y, 255 - (x + y) / 2]).round().astype(np.uint8)


def bgr(rgb: Plane) -> Plane:
    return np.ascontiguousarray(rgb[..., ::-1])


def greys(grey: Plane) -> Plane:
    return np.dstack([grey, grey, grey])


def saved(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def by_opencv(suffix: str, pixels: NDArray[np.generic]) -> bytes:
    done, buffer = cv2.imencode(suffix, pixels)
    assert done
    return buffer.tobytes()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(samples: NDArray[np.generic], bits: int, colour: int, *, before: bytes = b"", after: bytes = b"") -> bytes:
    """A PNG of any depth and colour type; `samples` [h, w] or [h, w, c] hold the raw sample values."""
    height, width = samples.shape[:2]
    rows = samples.reshape(height, -1)
    if bits < 8:
        shifts = np.arange(bits - 1, -1, -1)
        packed = np.packbits((rows[..., None] >> shifts & 1).reshape(height, -1).astype(np.uint8), axis=1)
    else:
        packed = rows.astype(">u2" if bits == 16 else np.uint8)
    raw = b"".join(b"\0" + row.tobytes() for row in packed)
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))
    body = before + chunk(b"IDAT", zlib.compress(raw)) + after
    return b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")


def exif(orientation: int) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = orientation
    tags[0x010F] = "Wakeswap test camera"
    return tags.tobytes()


def srgb_profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


P3 = {b"rXYZ": (0.5151, 0.2412, -0.0011), b"gXYZ": (0.2919, 0.6922, 0.0419), b"bXYZ": (0.1572, 0.0666, 0.7841)}
"""Display P3's primaries, adapted to D50."""
SRGB = {b"rXYZ": (0.4361, 0.2225, 0.0139), b"gXYZ": (0.3851, 0.7169, 0.0971), b"bXYZ": (0.1431, 0.0606, 0.7142)}


def rgb_profile(primaries: dict[bytes, tuple[float, float, float]]) -> bytes:
    """sRGB's profile with other primaries."""
    data = bytearray(srgb_profile())
    (count,) = struct.unpack_from(">I", data, 128)
    for at in range(132, 132 + 12 * count, 12):
        name, offset, _ = struct.unpack_from(">4sII", data, at)
        if name in primaries:
            struct.pack_into(">3i", data, offset + 8, *(round(v * 65536) for v in primaries[name]))
    return bytes(data)


def icc(space: bytes, connection: bytes, device: bytes, tags: dict[bytes, bytes]) -> bytes:
    """A version 2 profile (ICC.1:2001-04 section 6) of the given tags."""
    white = b"XYZ " + bytes(4) + struct.pack(">3i", 63190, 65536, 54061)
    all_tags = {b"wtpt": white, **tags}
    table, body, at = b"", b"", 132 + 12 * len(all_tags)
    for name, tag in all_tags.items():
        table += name + struct.pack(">II", at, len(tag))
        body += tag + bytes(-len(tag) % 4)
        at = 132 + 12 * len(all_tags) + len(body)
    head = struct.pack(">I4sI4s4s4s", at, bytes(4), 0x02400000, device, space, connection)
    head += bytes(12) + b"acsp" + bytes(28) + struct.pack(">3i", 63190, 65536, 54061)
    return head.ljust(128, b"\0") + struct.pack(">I", len(all_tags)) + table + body


def linear_grey_profile() -> bytes:
    return icc(b"GRAY", b"XYZ ", b"mntr", {b"kTRC": b"curv" + bytes(4) + struct.pack(">IH", 1, 256) + bytes(2)})


def black_only_profile() -> bytes:
    """A CMYK press that prints nothing but black: lightness is 100 minus K, the other inks are ignored."""
    ramp = bytes(range(256))
    grid = bytes(v for _cmy in range(8) for k in (255, 0) for v in (k, 128, 128))
    identity = struct.pack(">9i", 65536, 0, 0, 0, 65536, 0, 0, 0, 65536)
    lut = b"mft1" + bytes(4) + bytes([4, 3, 2, 0]) + identity + ramp * 4 + grid + ramp * 3
    return icc(b"CMYK", b"Lab ", b"prtr", {b"A2B0": lut})

"""Turned exactly once: every Exif value in every format that carries one, and what must not turn a picture."""

from __future__ import annotations

import io
import struct

import numpy as np
import pillow_heif
import pytest
from PIL import Image

from shared.imaging import exif
from shared.imaging.codec import decode
from shared.imaging.probe import probe
from tests.unit.imaging import samples
from tests.unit.imaging.samples import LIMITS, Plane, bgr, chunk, colours, png, saved

UPRIGHT = colours(64, 48)
STORED = {  # how a camera held in each way would store the upright picture: the inverse of Exif's table
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, 1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, -1),
}


def stored(value: int) -> Plane:
    return np.ascontiguousarray(STORED[value](UPRIGHT))


def jpeg(value: int) -> bytes:
    return saved(Image.fromarray(stored(value)), "JPEG", quality=95, subsampling=0, exif=samples.exif(value))


def tiff(value: int) -> bytes:
    return saved(Image.fromarray(stored(value)), "TIFF", tiffinfo={0x0112: value})


def avif(value: int) -> bytes:
    """Pillow writes the orientation as the container's own rotation and mirror."""
    data = saved(Image.fromarray(stored(value)), "AVIF", quality=95, exif=samples.exif(value))
    assert value == 1 or b"irot" in data or b"imir" in data
    return data


def heic(value: int) -> bytes:
    """Here too: Exif is rewritten as rotation and mirror of the container."""
    height, width = stored(value).shape[:2]
    image, buffer = pillow_heif.from_bytes("RGB", (width, height), stored(value).tobytes()), io.BytesIO()
    image.info["exif"] = samples.exif(value)
    image.save(buffer, quality=95, exif=samples.exif(value))
    data = buffer.getvalue()
    assert value == 1 or b"irot" in data or b"imir" in data
    return data


MAKERS = {
    "jpeg": jpeg,
    "png": lambda value: saved(Image.fromarray(stored(value)), "PNG", exif=samples.exif(value)),
    "webp": lambda value: saved(Image.fromarray(stored(value)), "WEBP", lossless=True, exif=samples.exif(value)),
    "tiff": tiff,
    "avif": avif,
    "heic": heic,
}


@pytest.mark.parametrize("value", range(1, 9))
@pytest.mark.parametrize("form", MAKERS)
def test_img_01_every_value_in_every_format(form: str, value: int) -> None:
    data = MAKERS[form](value)
    told = probe(data, LIMITS)
    assert (told.width, told.height) == (64, 48)
    picture = decode(data, LIMITS)
    assert picture.pixels.shape == UPRIGHT.shape
    assert picture.pixels.flags.c_contiguous
    assert np.abs(picture.pixels.astype(int) - bgr(UPRIGHT)).mean() < (4 if form in ("jpeg", "avif", "heic") else 0.1)


def test_alpha_turns_with_the_colours() -> None:
    rgba = np.dstack([UPRIGHT, UPRIGHT[..., 2]])
    data = saved(Image.fromarray(np.ascontiguousarray(STORED[7](rgba))), "PNG", exif=samples.exif(7))
    picture = decode(data, LIMITS)
    assert picture.alpha is not None
    assert np.array_equal(np.dstack([picture.pixels, picture.alpha]), np.dstack([bgr(UPRIGHT), UPRIGHT[..., 2]]))


def test_png_with_its_exif_behind_the_pixels() -> None:
    block = chunk(b"eXIf", samples.exif(6).removeprefix(b"Exif\0\0"))
    assert np.array_equal(decode(png(stored(6), 8, 2, after=block), LIMITS).pixels, bgr(UPRIGHT))


@pytest.mark.parametrize("form", ["JPEG", "TIFF", "WEBP"])
def test_stale_xmp_does_not_turn(form: str) -> None:
    xmp = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
    options = {"tiffinfo": {700: xmp}} if form == "TIFF" else {"xmp": xmp}
    data = saved(Image.fromarray(UPRIGHT), form, **options)
    assert xmp in data
    assert decode(data, LIMITS).pixels.shape == UPRIGHT.shape


def block(tag: int, form: int, value: bytes, order: str = "<") -> bytes:
    head = b"II*\0" if order == "<" else b"MM\0*"
    return head + struct.pack(order + "IHHHI", 8, 1, tag, form, 1) + value.ljust(4, b"\0")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (block(0x0112, 3, b"\x06\0"), 6),
        (b"Exif\0\0" + block(0x0112, 3, b"\0\x08", ">"), 8),
        (block(0x0112, 4, b"\x03\0\0\0"), 3),
        (block(0x0112, 3, b"\x09\0"), 1),
        (block(0x0112, 3, b"\0\0"), 1),
        (block(0x0112, 2, b"6\0"), 1),
        (block(0x010F, 3, b"\x06\0"), 1),
        (block(0x0112, 3, b"\x06\0")[:-6], 1),
        (b"II*\0\xff\xff\xff\xff", 1),
        (b"II*\0\x08\0\0\0\xff\xff", 1),
        (b"nonsense", 1),
        (b"", 1),
    ],
)
def test_exif_bytes(data: bytes, expected: int) -> None:
    assert exif.orientation(data) == expected

"""Every depth, palette and colour model of every format, one line each: the file, and what it must look like."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable

import cv2
import numpy as np
import pillow_heif
import pytest
from PIL import Image, ImageCms

from shared.imaging.codec import decode
from shared.imaging.probe import probe
from shared.rejections import AnimationUnsupportedError, UnsupportedMediaTypeError
from tests.unit.imaging.samples import LIMITS, Plane, bgr, by_opencv, chunk, colours, greys, png, saved

RGB = colours()
GREY = np.ascontiguousarray(RGB[..., 0])
ALPHA = np.ascontiguousarray(RGB[..., 1])
WIDE = np.maximum(GREY.astype(np.uint16) * 257, 3) - 3
WIDE_RGB = RGB.astype(np.uint16) * 256 + 128
IMAGE = Image.fromarray(RGB)
RGBA = np.dstack([RGB, ALPHA])
PALETTE = IMAGE.quantize(16)
OF_PALETTE = np.asarray(PALETTE.convert("RGB"))
BILEVEL = (GREY > 127).astype(np.uint8)
LAB = ImageCms.profileToProfile(IMAGE, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB")


def low(bits: int) -> Plane:
    return (GREY >> (8 - bits)).astype(np.uint8)


def spread(bits: int) -> Plane:
    return greys((low(bits) * (255 // (2**bits - 1))).astype(np.uint8))


def palette_png(bits: int) -> bytes:
    plte = chunk(b"PLTE", np.dstack([np.arange(2**bits)] * 3).astype(np.uint8).tobytes())
    return png(low(bits), bits, 3, before=plte)


def tiff(samples: bytes, entries: dict[int, tuple[int, int]], order: str = "<") -> bytes:
    """One uncompressed strip: tag -> (type, value) for single values, strip and size added here."""
    height, width = GREY.shape
    tags = {256: (4, width), 257: (4, height), 259: (3, 1), 273: (4, 8), 277: (3, 1), 278: (4, height)}
    tags |= {279: (4, len(samples)), **entries}
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8 + len(samples))
    body = struct.pack(order + "H", len(tags))
    for tag, (form, value) in sorted(tags.items()):
        packed = struct.pack(order + ("H2x" if form == 3 else "I"), value)
        body += struct.pack(order + "HHI", tag, form, 1) + packed
    return head + samples + body + bytes(4)


def twelve_bits() -> bytes:
    rows = (GREY.astype(np.uint32) * 4095 // 255)[..., None] >> np.arange(11, -1, -1) & 1
    packed = np.packbits(rows.reshape(GREY.shape[0], -1).astype(np.uint8), axis=1).tobytes()
    return tiff(packed, {258: (3, 12), 262: (3, 1)})


def heic(**options: object) -> bytes:
    buffer = io.BytesIO()
    pillow_heif.from_pillow(Image.fromarray(RGBA) if options.pop("alpha", False) else IMAGE).save(buffer, **options)
    return buffer.getvalue()


TABLE: dict[str, tuple[Callable[[], bytes], Plane, float]] = {
    # name: file, expected RGB, greatest mean difference in levels
    "png grey 1": (lambda: png(low(1), 1, 0), spread(1), 0),
    "png grey 2": (lambda: png(low(2), 2, 0), spread(2), 0),
    "png grey 4": (lambda: png(low(4), 4, 0), spread(4), 0),
    "png grey 8": (lambda: png(GREY, 8, 0), greys(GREY), 0),
    "png grey 16": (lambda: png(WIDE, 16, 0), greys(GREY), 0),
    "png colour 8": (lambda: png(RGB, 8, 2), RGB, 0),
    "png colour 16": (lambda: png(WIDE_RGB, 16, 2), RGB, 0),
    "png palette 1": (lambda: palette_png(1), greys(low(1)), 0),
    "png palette 2": (lambda: palette_png(2), greys(low(2)), 0),
    "png palette 4": (lambda: palette_png(4), greys(low(4)), 0),
    "png palette 8": (lambda: saved(PALETTE, "PNG", bits=8), OF_PALETTE, 0),
    "png of opencv": (lambda: by_opencv(".png", bgr(RGB)), RGB, 0),
    "jpeg": (lambda: saved(IMAGE, "JPEG", quality=95, subsampling=0), RGB, 2),
    "jpeg halved colour": (lambda: saved(IMAGE, "JPEG", quality=95), RGB, 3),
    "jpeg progressive": (lambda: saved(IMAGE, "JPEG", quality=95, subsampling=0, progressive=True), RGB, 2),
    "jpeg grey": (lambda: saved(Image.fromarray(GREY), "JPEG", quality=95), greys(GREY), 1),
    "jpeg cmyk": (lambda: saved(IMAGE.convert("CMYK"), "JPEG", quality=95), RGB, 2),
    "jpeg stored as rgb": (lambda: saved(IMAGE, "JPEG", quality=95, keep_rgb=True), RGB, 2),
    "webp": (lambda: saved(IMAGE, "WEBP", quality=95), RGB, 4),
    "webp lossless": (lambda: saved(IMAGE, "WEBP", lossless=True), RGB, 0),
    "gif": (lambda: saved(PALETTE, "GIF"), OF_PALETTE, 0),
    "gif grey": (lambda: saved(Image.fromarray(GREY), "GIF"), greys(GREY), 0),
    "bmp 1": (lambda: saved(Image.fromarray(BILEVEL * 255).convert("1"), "BMP"), greys(BILEVEL * 255), 0),
    "bmp 8": (lambda: saved(PALETTE, "BMP"), OF_PALETTE, 0),
    "bmp 24": (lambda: saved(IMAGE, "BMP"), RGB, 0),
    "tiff grey 8": (lambda: saved(Image.fromarray(GREY), "TIFF"), greys(GREY), 0),
    "tiff grey 12": (twelve_bits, greys(GREY), 0.6),
    "tiff grey 16": (lambda: saved(Image.fromarray(WIDE), "TIFF"), greys(GREY), 0),
    "tiff grey 16 deflate": (lambda: saved(Image.fromarray(WIDE), "TIFF", compression="tiff_deflate"), greys(GREY), 0),
    "tiff grey 16 big-endian": (
        lambda: tiff(WIDE.astype(">u2").tobytes(), {258: (3, 16), 262: (3, 1)}, ">"),
        greys(GREY),
        0,
    ),
    "tiff grey 16 white is zero": (
        lambda: tiff((65535 - WIDE).astype("<u2").tobytes(), {258: (3, 16), 262: (3, 0)}),
        greys(GREY),
        0.1,
    ),
    "tiff grey 8 white is zero": (lambda: tiff((255 - GREY).tobytes(), {258: (3, 8), 262: (3, 0)}), greys(GREY), 0),
    "tiff integer 32": (lambda: saved(Image.fromarray(WIDE.astype(np.int32)), "TIFF"), greys(GREY), 0),
    "tiff float 0 to 1": (lambda: saved(Image.fromarray((GREY / 255).astype(np.float32)), "TIFF"), greys(GREY), 0),
    "tiff float 0 to 255": (lambda: saved(Image.fromarray(GREY.astype(np.float32)), "TIFF"), greys(GREY), 0),
    "tiff colour 16": (lambda: by_opencv(".tiff", bgr(RGB).astype(np.uint16) * 257), RGB, 0),
    "tiff lzw": (lambda: saved(IMAGE, "TIFF", compression="tiff_lzw"), RGB, 0),
    "tiff jpeg": (lambda: saved(IMAGE, "TIFF", compression="jpeg", quality=95), RGB, 3),
    "tiff big": (lambda: saved(IMAGE, "TIFF", big_tiff=True), RGB, 0),
    "tiff fax": (
        lambda: saved(Image.fromarray(BILEVEL * 255).convert("1"), "TIFF", compression="group4"),
        greys(BILEVEL * 255),
        0,
    ),
    "tiff palette": (lambda: saved(PALETTE, "TIFF"), OF_PALETTE, 0),
    "tiff cmyk": (lambda: saved(IMAGE.convert("CMYK"), "TIFF"), RGB, 0.6),
    "tiff lab": (lambda: saved(LAB, "TIFF"), RGB, 3),
    "avif": (lambda: saved(IMAGE, "AVIF", quality=95), RGB, 3),
    "heic": (lambda: heic(quality=95), RGB, 3),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_comes_in_looks_right(name: str) -> None:
    make, expected, tolerance = TABLE[name]
    data = make()
    picture = decode(data, LIMITS)
    assert picture.alpha is None
    assert picture.pixels.dtype == np.uint8
    assert picture.pixels.flags.c_contiguous
    assert picture.pixels.flags.writeable
    difference = np.abs(picture.pixels[..., ::-1].astype(int) - expected)
    assert difference.mean() <= tolerance
    assert picture.format == name.split(maxsplit=1)[0]
    told = probe(data, LIMITS)
    assert (told.format, told.has_alpha) == (picture.format, False)
    assert (told.height, told.width) == picture.pixels.shape[:2]


KEY_GREY = png(low(4), 4, 0, before=chunk(b"tRNS", struct.pack(">H", 5)))
KEY_WIDE = png(WIDE, 16, 0, before=chunk(b"tRNS", struct.pack(">H", int(WIDE[0, 20]))))
KEY_COLOUR = png(RGB, 8, 2, before=chunk(b"tRNS", struct.pack(">3H", *map(int, RGB[5, 7]))))
KEY_WIDE_COLOUR = png(WIDE_RGB, 16, 2, before=chunk(b"tRNS", struct.pack(">3H", *map(int, WIDE_RGB[5, 7]))))
CLEAR_PIXEL = np.where((RGB[5, 7] == RGB).all(axis=2), 0, 255)

WITH_ALPHA: dict[str, tuple[Callable[[], bytes], np.ndarray]] = {
    "png grey and alpha 8": (lambda: png(np.dstack([GREY, ALPHA]), 8, 4), ALPHA),
    "png grey and alpha 16": (lambda: png(np.dstack([GREY, ALPHA]).astype(np.uint16) * 257, 16, 4), ALPHA),
    "png rgba 8": (lambda: png(RGBA, 8, 6), ALPHA),
    "png rgba 16": (lambda: png(RGBA.astype(np.uint16) * 257, 16, 6), ALPHA),
    "png clear grey 4": (lambda: KEY_GREY, np.where(low(4) == 5, 0, 255)),
    "png clear grey 16": (lambda: KEY_WIDE, np.where(WIDE[0, 20] == WIDE, 0, 255)),
    "png clear colour 8": (lambda: KEY_COLOUR, CLEAR_PIXEL),
    "png clear colour 16": (lambda: KEY_WIDE_COLOUR, CLEAR_PIXEL),
    "png clear palette": (
        lambda: saved(PALETTE, "PNG", transparency=3),
        np.where(np.asarray(PALETTE) == 3, 0, 255),
    ),
    "gif clear": (lambda: saved(PALETTE, "GIF", transparency=3), np.where(np.asarray(PALETTE) == 3, 0, 255)),
    "bmp": (lambda: by_opencv(".bmp", np.dstack([bgr(RGB), ALPHA])), ALPHA),
    "webp": (lambda: saved(Image.fromarray(RGBA), "WEBP", quality=80), ALPHA),
    "tiff": (lambda: saved(Image.fromarray(RGBA), "TIFF"), ALPHA),
    "tiff palette": (lambda: saved(Image.fromarray(np.dstack([GREY, ALPHA])), "TIFF"), ALPHA),
    "avif": (lambda: saved(Image.fromarray(RGBA), "AVIF", quality=100), ALPHA),
    "heic": (lambda: heic(alpha=True, quality=-1), ALPHA),
}


@pytest.mark.parametrize("name", WITH_ALPHA)
def test_alpha_comes_in_exactly(name: str) -> None:
    make, alpha = WITH_ALPHA[name]
    data = make()
    picture = decode(data, LIMITS)
    assert picture.alpha is not None
    assert picture.alpha.flags.writeable
    assert np.array_equal(picture.alpha, alpha)
    assert probe(data, LIMITS).has_alpha


def test_premultiplied_colours_are_divided_again() -> None:
    half = np.dstack([RGB, np.full_like(GREY, 128)])
    stored = tiff((half.astype(np.uint16) * [128, 128, 128, 255] // 255).astype(np.uint8).tobytes(), {})
    tags = {258: (3, 8), 262: (3, 2), 277: (3, 4), 338: (3, 1)}
    picture = decode(tiff(stored[8 : 8 + half.size], tags), LIMITS)
    assert np.abs(picture.pixels[..., ::-1].astype(int) - RGB).max() <= 3


def test_float_extremes_do_not_wrap() -> None:
    values = np.linspace(-1e38, 3e38, GREY.size, dtype=np.float32).reshape(GREY.shape)
    values[0, :3] = (np.nan, np.inf, -np.inf)
    pixels = decode(saved(Image.fromarray(values), "TIFF"), LIMITS).pixels
    assert (pixels[-1, -1] == 255).all()
    assert (pixels[0] == 0).all()


def test_pages_bursts_and_films_are_refused() -> None:
    other = Image.fromarray(RGB[::-1].copy())
    burst = io.BytesIO()
    heif = pillow_heif.from_pillow(IMAGE)
    heif.add_from_pillow(other)
    heif.save(burst)
    for data in (
        saved(IMAGE, "TIFF", save_all=True, append_images=[other]),
        saved(IMAGE, "AVIF", save_all=True, append_images=[other]),
        burst.getvalue(),
        heic().replace(b"mif1", b"msf1", 1),
    ):
        with pytest.raises(AnimationUnsupportedError):
            probe(data, LIMITS)


def test_a_still_apng_is_a_picture() -> None:
    control = chunk(b"acTL", struct.pack(">II", 1, 0))
    frame = chunk(b"fcTL", struct.pack(">IIIIIHHBB", 0, RGB.shape[1], RGB.shape[0], 0, 0, 1, 10, 0, 0))
    assert np.array_equal(decode(png(RGB, 8, 2, before=control + frame), LIMITS).pixels, bgr(RGB))


@pytest.mark.parametrize("entries", [{254: (4, 1)}, {50706: (4, 0x01040000)}])
def test_camera_raw_previews_are_not_taken_for_the_picture(entries: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(UnsupportedMediaTypeError, match="raw"):
        probe(tiff(GREY.tobytes(), {258: (3, 8), 262: (3, 1), **entries}), LIMITS)


def test_opencv_and_the_jpeg_decoder_agree() -> None:
    data = saved(IMAGE, "JPEG", quality=80)
    expected = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert np.array_equal(decode(data, LIMITS).pixels, expected)

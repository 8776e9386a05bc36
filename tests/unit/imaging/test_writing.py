"""What goes out: close to the pixels, clean of metadata, the same bytes every time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from shared.errors import InvalidOptionError
from shared.imaging.codec import CONTENT_TYPES, Picture, decode, encode, output_format
from shared.imaging.probe import Limits, probe
from shared.imaging.writers import WRITERS
from shared.rejections import ImageTooLargeError
from tests.unit.imaging import samples
from tests.unit.imaging.samples import CASES, LIMITS, bgr, case, colours, saved

PIXELS = bgr(colours())
ALPHA = np.ascontiguousarray(PIXELS[..., 1])
EXACT = {"png", "tiff", "bmp"}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("size", [(17, 16), (16, 17), (53, 37), (64, 64)])
def test_sizes_are_kept(form: str, size: tuple[int, int]) -> None:
    pixels = bgr(colours(*size))
    data, content_type = encode(Picture(pixels, None, "jpeg"), form, 95)
    told = probe(data, LIMITS)
    assert (told.width, told.height, told.format, told.content_type) == (*size, form, content_type)
    again = decode(data, LIMITS)
    difference = np.abs(again.pixels.astype(int) - pixels)
    assert difference.mean() <= (0 if form in EXACT else 12 if form == "gif" else 4)
    assert again.alpha is None
    assert not told.has_alpha


@pytest.mark.parametrize("form", WRITERS)
def test_same_bytes_every_time_and_in_every_thread(form: str) -> None:
    picture = Picture(PIXELS, ALPHA, "png")
    once = encode(picture, form, 85)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: encode(picture, form, 85), range(4))) == {once}


@pytest.mark.parametrize("form", WRITERS)
def test_nothing_of_the_input_but_pixels(form: str) -> None:
    tags = Image.Exif()
    tags[0x010F] = "SecretCamera"
    tags.get_ifd(0x8825)[1] = "N"
    data = saved(Image.fromarray(colours()), "JPEG", exif=tags, comment=b"SecretComment", xmp=b"SecretXmp")
    written, _ = encode(decode(data, LIMITS), form, 90)
    assert b"Secret" in data
    for trace in (b"Secret", b"Exif", b"http://ns.adobe.com", b"OpenCV", b"Software"):
        assert trace not in written
    if form == "tiff":
        assert not Image.Exif().get_ifd(0x8825)


def test_quality_matters_where_it_can() -> None:
    picture = decode(case("upright_240x320.png"), LIMITS)
    for form in ("jpeg", "webp", "avif"):
        assert len(encode(picture, form, 40)[0]) < len(encode(picture, form, 90)[0]) * 0.7


def test_white_shows_through_in_proportion() -> None:
    pixels, alpha = np.zeros((16, 256, 3), np.uint8), np.tile(np.arange(256, dtype=np.uint8), (16, 1))
    flat = decode(encode(Picture(pixels, alpha, "png"), "bmp", 90)[0], LIMITS).pixels
    assert np.array_equal(flat[0, :, 0], 255 - np.arange(256))


def test_gif_keeps_an_alpha_of_clear_and_opaque_and_few_colours_exactly() -> None:
    few = np.ascontiguousarray(PIXELS // 64 * 64)
    mask = np.where(ALPHA > 99, 255, 0).astype(np.uint8)
    again = decode(encode(Picture(few, mask, "gif"), "gif", 90)[0], LIMITS)
    assert np.array_equal(again.alpha, mask)
    assert np.array_equal(again.pixels[mask > 0], few[mask > 0])
    soft = decode(encode(Picture(few, ALPHA, "gif"), "gif", 90)[0], LIMITS)
    assert soft.alpha is None


def test_output_format() -> None:
    assert [output_format("same", name) for name in ("png", "heic", "mpo", "jpeg", "gif")] == [
        "png",
        "jpeg",
        "jpeg",
        "jpeg",
        "gif",
    ]
    assert output_format("webp", "heic") == "webp"
    assert set(CONTENT_TYPES) == set(WRITERS)
    for wanted in ("heic", "svg", "", "JPEG"):
        with pytest.raises(InvalidOptionError):
            output_format(wanted, "jpeg")
    with pytest.raises(InvalidOptionError):
        encode(Picture(PIXELS, None, "png"), "heic", 90)


def test_webp_holds_no_longer_side() -> None:
    strip = Picture(np.zeros((16, 16384, 3), np.uint8), None, "png")
    with pytest.raises(ImageTooLargeError):
        encode(strip, "webp", 90)


def test_limits_are_the_callers() -> None:
    data = encode(Picture(PIXELS, None, "png"), "png", 90)[0]
    height, width = PIXELS.shape[:2]
    assert probe(data, Limits(max_pixels=height * width)).width == width
    for limits in (Limits(max_pixels=height * width - 1), Limits(max_side=width - 1)):
        with pytest.raises(ImageTooLargeError):
            probe(data, limits)


def test_many_threads_decode_what_one_does() -> None:
    names = sorted(path.name for path in CASES.glob("*") if path.stat().st_size < 200_000)
    profile = {"icc_profile": samples.rgb_profile(samples.P3)}
    files = [saved(Image.fromarray(colours()), form, **profile) for form in ("JPEG", "PNG", "WEBP", "AVIF", "TIFF")]
    files += map(case, names)

    def outcome(data: bytes) -> tuple[object, ...]:
        try:
            picture = decode(data, LIMITS)
        except Exception as error:  # noqa: BLE001 - compared between threads, whatever it is
            return type(error), str(error)
        return picture.format, picture.pixels.tobytes(), picture.alpha is None or picture.alpha.tobytes()

    alone = [outcome(data) for data in files]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(outcome, files * 2)) == alone * 2

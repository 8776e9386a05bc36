"""The field cases IMG-*, at the level of the codec: one test or more for each id."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shared.errors import RejectedError
from shared.imaging.codec import decode, encode
from shared.imaging.probe import probe
from shared.rejections import (
    AnimationUnsupportedError,
    ImageTooLargeError,
    ImageTooSmallError,
    MediaCorruptError,
    MediaEmptyError,
    MediaTruncatedError,
    UnsupportedMediaTypeError,
)
from tests.unit.imaging.samples import CASES, LIMITS, Plane, bgr, case, chunk, colours, png

ROOT = Path(__file__).parents[3]
RED, GREEN, BLUE = (0, 0, 255), (0, 255, 0), (255, 0, 0)


def distance(a: Plane, b: Plane) -> float:
    return float(np.abs(a.astype(int) - b.astype(int)).mean())


@pytest.mark.parametrize("name", [*map(str, range(2, 9)), "invalid_9"])
def test_img_01_exif_orientation(name: str) -> None:
    data = case(f"exif_orientation_{name}.jpg")
    picture = decode(data, LIMITS)
    assert picture.pixels.shape == (320, 240, 3)
    for (x, y), colour in {(8, 8): RED, (231, 8): BLUE, (8, 311): GREEN}.items():
        assert np.abs(picture.pixels[y, x].astype(int) - colour).max() <= 40
    assert distance(picture.pixels, decode(case("upright_240x320.png"), LIMITS).pixels) <= 6
    told = probe(data, LIMITS)
    assert (told.width, told.height) == (240, 320)


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "tiff", "avif"])
def test_img_01_output_is_not_turned_again(form: str) -> None:
    picture = decode(case("exif_orientation_6.jpg"), LIMITS)
    data, _ = encode(picture, form, 90)
    again = decode(data, LIMITS)
    assert again.pixels.shape == (320, 240, 3)
    assert distance(again.pixels, picture.pixels) < 4
    assert b"Exif" not in data


@pytest.mark.parametrize("name", ["cmyk_adobe.jpg", "ycck_adobe.jpg"])
def test_img_03_inverted_inks(name: str) -> None:
    picture = decode(case(name), LIMITS)
    blue, green, red = picture.pixels[8, 8]
    assert red >= 245
    assert max(green, blue) <= 10
    assert distance(picture.pixels, decode(case("progressive.jpg"), LIMITS).pixels) <= 6
    assert decode(encode(picture, "jpeg", 90)[0], LIMITS).pixels.shape == (256, 256, 3)


def test_img_03_mpo_gives_its_first_picture() -> None:
    data = case("mpo_two_frames.jpg")
    assert probe(data, LIMITS).format == "mpo"
    assert probe(data, LIMITS).content_type == "image/jpeg"
    picture = decode(data, LIMITS)
    assert distance(picture.pixels, decode(case("progressive.jpg"), LIMITS).pixels) <= 6
    written, _ = encode(picture, "jpeg", 90)
    assert written.count(b"\xff\xd8\xff") == 1
    assert probe(written, LIMITS).format == "jpeg"


def test_img_03_grey_and_bilevel() -> None:
    grey, bilevel = (decode(case(name), LIMITS).pixels for name in ("gray.jpg", "bilevel.png"))
    assert grey.shape == bilevel.shape == (256, 256, 3)
    assert (grey[..., 0] == grey[..., 2]).all()
    assert set(np.unique(bilevel)) == {0, 255}


ALPHA_MEANS = {
    "rgba_alpha.png": 102.31,
    "palette_trns_bytes.png": 102.31,
    "palette_trns_index.png": 251.05,
    "gray_alpha_LA.png": 102.31,
}


@pytest.mark.parametrize(("name", "mean"), ALPHA_MEANS.items())
@pytest.mark.parametrize("form", ["png", "webp", "avif", "tiff"])
def test_img_05_alpha_is_kept(name: str, mean: float, form: str) -> None:
    picture = decode(case(name), LIMITS)
    assert picture.alpha is not None
    assert picture.alpha.mean() == pytest.approx(mean, abs=0.005)
    again = decode(encode(picture, form, 80)[0], LIMITS)
    assert np.array_equal(again.alpha, picture.alpha)
    if form in ("png", "tiff"):
        assert np.array_equal(again.pixels, picture.pixels), "colours under clear pixels are kept too"


@pytest.mark.parametrize("name", [name for name in ALPHA_MEANS if "index" not in name])
@pytest.mark.parametrize("form", ["jpeg", "bmp"])
def test_img_05_without_alpha_the_ground_is_white(name: str, form: str) -> None:
    picture = decode(case(name), LIMITS)
    assert picture.alpha is not None
    assert picture.alpha[100, 4] == 0
    again = decode(encode(picture, form, 90)[0], LIMITS)
    assert again.alpha is None
    assert again.pixels[100, 4].min() >= 250


@pytest.mark.parametrize("name", ["anim_3frames.gif", "anim_3frames.webp", "anim_3frames_apng.png"])
def test_img_06_animations_are_refused(name: str) -> None:
    with pytest.raises(AnimationUnsupportedError):
        probe(case(name), LIMITS)
    with pytest.raises(AnimationUnsupportedError):
        decode(case(name), LIMITS)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("truncated_60pct.jpg", MediaTruncatedError),
        ("truncated_50pct.png", MediaTruncatedError),
        ("truncated_last_2_bytes.jpg", MediaTruncatedError),
        ("png_bad_crc.png", MediaCorruptError),
    ],
)
def test_img_08_damaged_files(name: str, error: type[RejectedError]) -> None:
    with pytest.raises(error):
        decode(case(name), LIMITS)


def test_img_08_cut_anywhere() -> None:
    for name in ("progressive.jpg", "gray.jpg", "exif_orientation_6.jpg"):
        data = case(name)
        for end in (len(data) * part // 20 for part in range(1, 20)):
            with pytest.raises((MediaTruncatedError, MediaCorruptError)):
                decode(data[:end], LIMITS)


def test_img_08_cut_and_closed_with_an_end_marker() -> None:
    """What upload helpers make of a broken transfer: every cheap check is content, half of the picture is grey."""
    data = case("exif_orientation_6.jpg")
    with pytest.raises(MediaTruncatedError):
        decode(data[: len(data) * 6 // 10] + b"\xff\xd9", LIMITS)


def test_img_08_stray_bytes_that_cost_no_pixels_are_forgiven() -> None:
    """Some cameras leave them between segments; every viewer shows the picture."""
    data = case("exif_orientation_6.jpg")
    at = data.index(b"\xff\xc4")
    odd = data[:at] + b"\0\1\2" + data[at:]
    assert np.array_equal(decode(odd, LIMITS).pixels, decode(data, LIMITS).pixels)


BOMBS = ("bomb_20000x20000.png", "bomb_12000x12000_warn_only.png", "gif_screen_65535.gif")


@pytest.mark.parametrize("name", BOMBS)
def test_img_09_bombs_are_refused_from_the_header(name: str) -> None:
    with pytest.raises(ImageTooLargeError) as caught:
        probe(case(name), LIMITS)
    assert caught.value.status == 413
    assert caught.value.context["max_pixels"] == 50_000_000
    with pytest.raises(ImageTooLargeError):
        decode(case(name), LIMITS)


def test_img_09_text_bomb() -> None:
    with pytest.raises(ImageTooSmallError):
        probe(case("png_ztxt_60mb.png"), LIMITS)
    text = case("png_ztxt_60mb.png")
    start = text.index(b"zTXt") - 4
    bomb = text[start : start + 12 + int.from_bytes(text[start : start + 4], "big")]
    with pytest.raises(MediaCorruptError):
        decode(png(colours(), 8, 2, before=bomb), LIMITS)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xd8" + b"\xff\xe0\0\2" * 400_000,
        b"GIF89a\x40\0\x40\0\0\0\0" + b"!\xfe\1a\0" * 200_000,
        png(colours(), 8, 2)[:33] + chunk(b"abCd", b"") * 200_000,
    ],
    ids=["segments", "comments", "chunks"],
)
def test_img_09_endless_headers_are_given_up(data: bytes) -> None:
    """A body of 25 MB in this way kept Pillow busy for 13 s."""
    with pytest.raises(RejectedError) as caught:
        probe(data, LIMITS)
    assert "too many segments" in str(caught.value.__cause__)


IN_A_FRESH_PROCESS = r"""
import json, re, sys, time
from shared.errors import WakeswapError
from shared.imaging.probe import Limits, probe
def hook(event, _):
    if event.startswith(("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "socket.")):
        raise SystemExit(f"left the process: {event}")
sys.addaudithook(hook)
# not ru_maxrss: a child starts with its parent's peak
peak = lambda: int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) // 1024
files = [open(name, "rb").read() for name in sys.argv[1:]]
answers, before, start = [], peak(), time.perf_counter()
for data in files:
    try:
        answers.append(probe(data, Limits()).format)
    except WakeswapError as error:
        answers.append(error.code)
print(json.dumps({"answers": answers, "seconds": time.perf_counter() - start, "megabytes": peak() - before,
                  "heavy": sorted({"numpy", "cv2", "pillow_heif"} & sys.modules.keys())}))
"""


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its memory from Linux's /proc")


def in_a_fresh_process(*names: str) -> dict[str, object]:
    command = [sys.executable, "-c", IN_A_FRESH_PROCESS, *(str(CASES / name) for name in names)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    facts: dict[str, object] = json.loads(done.stdout)
    return facts


@linux
def test_img_09_time_and_memory_of_the_check() -> None:
    facts = in_a_fresh_process(*BOMBS, "png_ztxt_60mb.png")
    assert facts["answers"] == ["image_too_large"] * 3 + ["image_too_small"]
    assert float(str(facts["seconds"])) < 1
    assert int(str(facts["megabytes"])) < 50
    assert facts["heavy"] == []


@linux
def test_img_10_content_decides_and_nothing_leaves_the_process() -> None:
    expected = {
        "png_named.jpg": "png",
        "webp_named.png": "webp",
        "polyglot_jpeg_zip.jpg": "jpeg",
        "polyglot_gif_html.gif": "gif",
        "html_named.jpg": "unsupported_media_type",
        "eps_named.jpg": "unsupported_media_type",
        "svg_named.png": "unsupported_media_type",
        "remote_ref.svg": "unsupported_media_type",
        "zero_bytes.jpg": "media_empty",
        "one_pixel.png": "image_too_small",
        "strip_8000x1.png": "image_too_small",
    }
    facts = in_a_fresh_process(*expected)
    assert facts["answers"] == list(expected.values())
    assert facts["heavy"] == []


@pytest.mark.parametrize("name", ["html_named.jpg", "eps_named.jpg", "svg_named.png", "remote_ref.svg"])
def test_img_10_what_is_no_picture_is_not_decoded(name: str) -> None:
    with pytest.raises(UnsupportedMediaTypeError):
        decode(case(name), LIMITS)


def test_img_10_empty_and_tiny() -> None:
    with pytest.raises(MediaEmptyError):
        decode(case("zero_bytes.jpg"), LIMITS)
    for name in ("one_pixel.png", "strip_8000x1.png"):
        with pytest.raises(ImageTooSmallError):
            decode(case(name), LIMITS)


@pytest.mark.parametrize("name", ["polyglot_jpeg_zip.jpg", "polyglot_gif_html.gif"])
@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "avif", "tiff", "bmp", "gif"])
def test_img_10_polyglots_come_out_clean(name: str, form: str) -> None:
    data = case(name)
    assert b"PK\x03\x04" in data or b"<script" in data
    written, _ = encode(decode(data, LIMITS), form, 90)
    assert b"PK\x03\x04" not in written
    assert b"<script" not in written.lower()


def test_img_10_png_text_does_not_survive() -> None:
    data = png(colours(), 8, 2, before=chunk(b"tEXt", b"Comment\0<script>alert(1)</script>"))
    picture = decode(data, LIMITS)
    assert np.array_equal(picture.pixels, bgr(colours()))
    assert b"script" not in encode(picture, "png", 90)[0]

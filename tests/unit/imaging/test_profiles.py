"""Colour profiles: what is not sRGB becomes sRGB, what is stays untouched to the bit, what is broken is ignored."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from shared.imaging.codec import decode, encode
from tests.unit.imaging.samples import (
    LIMITS,
    P3,
    SRGB,
    Plane,
    bgr,
    black_only_profile,
    colours,
    greys,
    linear_grey_profile,
    rgb_profile,
    saved,
    srgb_profile,
)

RGB = colours()
SWAPPED = {b"rXYZ": SRGB[b"bXYZ"], b"bXYZ": SRGB[b"rXYZ"]}


def through_xyz(pixels: Plane) -> Plane:
    """Display P3 to sRGB by the definition (IEC 61966-2-1): linear light, to XYZ (D50), to the primaries, back."""
    v = pixels / 255
    linear = np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    to_xyz, from_xyz = (np.array([p[b"rXYZ"], p[b"gXYZ"], p[b"bXYZ"]]).T for p in (P3, SRGB))
    light = (linear @ (np.linalg.inv(from_xyz) @ to_xyz).T).clip(0, 1)
    shown = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    return (shown * 255).round().astype(np.uint8)


@pytest.mark.parametrize("form", ["PNG", "TIFF", "WEBP", "AVIF", "JPEG"])
def test_wide_gamut_becomes_srgb(form: str) -> None:
    options = {"WEBP": {"lossless": True}, "JPEG": {"quality": 100, "subsampling": 0}, "AVIF": {"quality": 100}}
    image, profile = Image.fromarray(RGB), rgb_profile(P3)
    data = saved(image, form, icc_profile=profile, **options.get(form, {}))
    difference = np.abs(decode(data, LIMITS).pixels.astype(int) - bgr(through_xyz(RGB)))
    assert np.abs(through_xyz(RGB).astype(int) - RGB).max() > 20, "the profile matters"
    assert difference.mean() < 1.5
    assert difference.max() <= (20 if form in ("JPEG", "AVIF") else 2)


def test_swapped_primaries_swap_the_channels() -> None:
    data = saved(Image.fromarray(RGB), "PNG", icc_profile=rgb_profile(SWAPPED))
    assert np.abs(decode(data, LIMITS).pixels.astype(int) - RGB).max() <= 2


def test_alpha_is_no_colour() -> None:
    rgba = np.dstack([RGB, RGB[..., 1]])
    picture = decode(saved(Image.fromarray(rgba), "PNG", icc_profile=rgb_profile(P3)), LIMITS)
    assert np.array_equal(picture.alpha, RGB[..., 1])
    assert np.abs(picture.pixels.astype(int) - bgr(through_xyz(RGB))).max() <= 2


def test_palette_and_16_bit_grey_follow_their_profile() -> None:
    palette = Image.fromarray(RGB).quantize(32)
    picture = decode(saved(palette, "PNG", icc_profile=rgb_profile(SWAPPED)), LIMITS)
    assert np.abs(picture.pixels.astype(int) - np.asarray(palette.convert("RGB"))).max() <= 2
    linear = np.full((20, 20), 14146, np.uint16)  # 21.6 % light is 128 in sRGB
    picture = decode(saved(Image.fromarray(linear), "PNG", icc_profile=linear_grey_profile()), LIMITS)
    assert np.abs(picture.pixels.astype(int) - 128).max() <= 1


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_linear_grey(form: str) -> None:
    image = Image.fromarray(np.full((20, 20), 55, np.uint8))
    picture = decode(saved(image, form, icc_profile=linear_grey_profile()), LIMITS)
    assert np.abs(picture.pixels.astype(int) - 128).max() <= 1


@pytest.mark.parametrize("form", ["JPEG", "TIFF"])
def test_inks_follow_their_profile(form: str) -> None:
    """Full cyan on a press that ignores cyan is white; without the profile it is cyan."""
    image = Image.new("CMYK", (32, 32), (255, 0, 0, 0))
    plain, printed = (decode(saved(image, form, **options), LIMITS).pixels for options in ({}, _press()))
    assert plain[5, 5].tolist() == [255, 255, 0]
    assert printed[5, 5].min() >= 250


def _press() -> dict[str, bytes]:
    return {"icc_profile": black_only_profile()}


@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_srgb_itself_changes_nothing(form: str) -> None:
    image = Image.fromarray(RGB)
    with_profile, without = (saved(image, form, **options) for options in ({"icc_profile": srgb_profile()}, {}))
    assert np.array_equal(decode(with_profile, LIMITS).pixels, decode(without, LIMITS).pixels)


@pytest.mark.parametrize(
    "profile",
    [b"no profile at all", srgb_profile()[:200], linear_grey_profile(), black_only_profile()],
    ids=["text", "cut", "of grey", "of inks"],
)
@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF"])
def test_a_useless_profile_is_ignored(form: str, profile: bytes) -> None:
    image = Image.fromarray(RGB)
    with_profile, without = (saved(image, form, **options) for options in ({"icc_profile": profile}, {}))
    assert np.array_equal(decode(with_profile, LIMITS).pixels, decode(without, LIMITS).pixels)


def test_grey_picture_with_a_colour_profile() -> None:
    grey = np.ascontiguousarray(RGB[..., 0])
    data = saved(Image.fromarray(grey), "JPEG", quality=100, icc_profile=rgb_profile(P3))
    assert np.abs(decode(data, LIMITS).pixels.astype(int) - greys(grey)).max() <= 3


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "avif", "tiff", "gif", "bmp"])
def test_no_profile_goes_out(form: str) -> None:
    profile = rgb_profile(P3)
    picture = decode(saved(Image.fromarray(RGB), "PNG", icc_profile=profile), LIMITS)
    written = encode(picture, form, 90)[0]
    assert b"acsp" not in written
    assert b"ICC" not in written

"""Decoded pictures of any mode and colour profile become sRGB or grey, with alpha apart.

Knows numpy, Pillow and its LittleCMS binding. A profile that is broken or made for another kind of picture is
ignored, as every viewer does: the picture is still there.
"""

from __future__ import annotations

import io
from functools import cache
from typing import cast

import numpy as np
from PIL import Image, ImageChops, ImageCms

from shared.imaging.depth import WIDE_MODES, narrow
from shared.imaging.sniff import Kind

_MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
_INTENT = ImageCms.Intent.RELATIVE_COLORIMETRIC
_FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION
_UNSEEN = 1
"""Levels of 255. Copies of sRGB from different makers differ by rounding; converting would only add noise."""


def profile(image: Image.Image) -> ImageCms.ImageCmsTransform | None:
    """The way from the picture's embedded profile to sRGB; None where pixels are or count as sRGB already."""
    if image.mode == "LAB":
        return _build(ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")), "LAB")
    icc = image.info.get("icc_profile")
    if not icc:
        return None
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(icc))
        mode = _MODES.get(source.profile.xcolor_space.strip(), "")
        if not _fits(mode, image.mode):
            return None
        transform = _build(source, mode)
        return None if _is_identity(transform) else transform
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        return None


def to_srgb(
    kind: Kind, image: Image.Image, transform: ImageCms.ImageCmsTransform | None
) -> tuple[Image.Image, Image.Image | None]:
    """A decoded picture as mode RGB or L, and its alpha as mode L. Colours under transparent pixels stay as stored."""
    base, alpha = _split(kind, image)
    if transform is not None:
        return _apply(transform, _in_mode(base, transform.input_mode)), alpha
    return (base if base.mode == "L" else _in_mode(base, "RGB")), alpha


def _split(kind: Kind, image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    if image.mode in WIDE_MODES:
        return narrow(kind, image)
    if not image.has_transparency_data:
        return (image.convert("L") if image.mode == "1" else image), None
    if image.mode in ("1", "L", "LA", "La"):
        grey = image.convert("LA")
        return grey.getchannel(0), grey.getchannel(1)
    colour = image.convert("RGBA")
    return colour.convert("RGB"), colour.getchannel("A")


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    return image if image.mode == mode else image.convert(mode)


def _fits(profile_mode: str, image_mode: str) -> bool:
    if profile_mode == "RGB":
        return image_mode != "CMYK"
    if profile_mode == "L":
        return image_mode in WIDE_MODES | {"1", "L", "LA", "La"}
    return profile_mode == image_mode


def _build(source: ImageCms.ImageCmsProfile, mode: str) -> ImageCms.ImageCmsTransform:
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    return ImageCms.buildTransform(source, srgb, mode, "RGB", _INTENT, _FLAGS)


def _apply(transform: ImageCms.ImageCmsTransform, image: Image.Image) -> Image.Image:
    return cast("Image.Image", ImageCms.applyTransform(image, transform))  # None is for work in place only


def _is_identity(transform: ImageCms.ImageCmsTransform) -> bool:
    if transform.input_mode == "CMYK":
        return False
    sample = _sample(transform.input_mode)
    difference = ImageChops.difference(_apply(transform, sample), sample.convert("RGB"))
    return int(np.asarray(difference).max()) <= _UNSEEN


@cache
def _sample(mode: str) -> Image.Image:
    """Every grey, or every colour of a cube of 16 levels."""
    if mode == "L":
        return Image.frombytes("L", (256, 1), bytes(range(256)))
    levels = range(0, 256, 17)
    return Image.frombytes("RGB", (64, 64), bytes(v for r in levels for g in levels for b in levels for v in (r, g, b)))
